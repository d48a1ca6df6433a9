"""Signs and checks requests: prints the same under both Pythons."""

from dragoneye import keys, protocol

RAW = {name: bytes([place] * keys.KEY_BYTES) for place, name in enumerate(keys.NAMES)}
gate = keys.Gate("U1", bytes(range(16)), {name: keys.Key(RAW[name]) for name in RAW})
print(keys.name_of(RAW["journal"]), gate.seed("5eed"))
for number, (role, name, counter) in enumerate(
    (
        ("dealer", "open", 1),
        ("supervisor", "close", 2),
        ("dealer", "shake", 2),
        ("technician", "shake", 3),
        ("journal", "shake", 3),
        ("dealer", "void", 3),
        ("technician", "test", 1002),
        ("technician", "test", 2003),
    )
):
    body = protocol.body_of(number, '{"q":"' + name + '"}')
    claim = role + ":" + str(counter)
    mac = keys.Key(RAW[role]).sign("U1", gate.nonce, body[:-1], claim)
    line = protocol.seal(body[:-1] + b',"a":"' + claim.encode() + b":" + mac.encode() + b'"}')
    print(line)
    for changed in (line[:-10], line[:-12] + b'"}', line[:-10] + b" ", body):
        try:
            print(gate.check(protocol.decode(protocol.seal(changed))[1], changed, number * 70000))
        except protocol.Problem as problem:
            print(problem.code, problem.why)
print(sorted(gate.refused.items()))
