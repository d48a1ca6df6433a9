"""What the tags seen say about three dice (one is the dragon's eye), and when that is a result.

A registry maps a tag's UID (upper-case hex) to (die 0..2, face 1..6): the number printed on the face that carries the
tag. A die shows 7 less the face that lies on the reader.
"""

# Void reasons; the protocol's table gives the words.
FOREIGN_TAG = "foreign_tag"
UNRESOLVED = "unresolved"
TWO_FACES = "two_faces"
DIE_MISSING = "die_missing"
NOT_SETTLED = "not_settled"


def registry_of(dice):
    """The registry {uid: (die, face)} of a configuration's `dice`: three lists of six UIDs, for the faces 1 to 6.

    Raises ValueError when a UID is there twice or a list is short.
    """
    registry = {}
    if len(dice) != 3:
        raise ValueError("there are %d dice; three are needed" % len(dice))
    for die, faces in enumerate(dice):
        if len(faces) != 6:
            raise ValueError("die %d has %d tags; six are needed" % (die + 1, len(faces)))
        for face, uid in enumerate(faces, 1):
            uid = uid.upper()
            if uid in registry:
                raise ValueError("tag %s is there twice" % uid)
            registry[uid] = (die, face)
    return registry


def judge(tags, registry):
    """One pass's verdict: (values, None) with three values 1..6 in die order, or (None, void reason).

    `tags` is the set of UIDs seen, or None when a collision was not resolved.
    """
    if tags is None:
        return None, UNRESOLVED
    # Before all else: what the set's order happens to be must not choose the reason.
    for uid in tags:
        if uid not in registry:
            return None, FOREIGN_TAG
    values = [0, 0, 0]
    for uid in tags:
        die, face = registry[uid]
        if values[die]:
            return None, TWO_FACES
        values[die] = 7 - face
    if 0 in values:
        return None, DIE_MISSING
    return tuple(values), None


class Reader:
    """Collects passes until two in a row agree on a result, or `tries` passes are used up."""

    def __init__(self, registry, tries):
        self._registry = registry
        self._tries = tries
        self._last = None
        self._reason = None
        self._passes = 0

    def add(self, tags):
        """Take one pass. Returns None to read again, else (values, None) or (None, void reason).

        Passes that were each a result but never twice the same are NOT_SETTLED; else the last pass's reason holds.
        """
        values, reason = judge(tags, self._registry)
        if reason == FOREIGN_TAG:
            return None, reason
        self._passes += 1
        if values is not None and values == self._last:
            return values, None
        if values is not None and self._last is not None:
            self._reason = NOT_SETTLED
        elif reason is not None:
            self._reason = reason
        self._last = values
        if self._passes < self._tries:
            return None
        return None, self._reason or NOT_SETTLED
