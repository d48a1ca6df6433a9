"""What the tags seen say about three dice (one is the dragon's eye), and when that is a result.

A registry maps a tag's UID (upper-case hex) to (die 0..2, face 1..6): the number printed on the face that carries the
tag. A die shows 7 less the face that lies on the reader.
"""

from dragoneye.errors import BadInput

# Void reasons; the protocol's table gives the words.
FOREIGN_TAG = "foreign_tag"
UNRESOLVED = "unresolved"
TWO_FACES = "two_faces"
COCKED = "cocked"
DIE_MISSING = "die_missing"
NOT_SETTLED = "not_settled"


# Hex digits of a UID of 4 or 7 bytes.
UID_DIGITS = (8, 14)

# (die, face), shared by all registries: what lives long and is there once is quick to collect around (see heap).
_PLACES = [[(die, face) for face in range(1, 7)] for die in range(3)]


def check_uid(uid):
    """Raises BadInput unless `uid` is one of 4 or 7 bytes (ISO 14443-3, single and double size) as upper-case hex."""
    if not isinstance(uid, str) or len(uid) not in UID_DIGITS or not all(char in "0123456789ABCDEF" for char in uid):
        raise BadInput("tag %s is not 8 or 14 hex digits" % uid)


def registry_of(dice):
    """The registry {uid: (die, face)} of a configuration's `dice`: three lists of six UIDs, for the faces 1 to 6.

    Raises BadInput when a UID is none or is there twice, or when a list is short.
    """
    registry = {}
    if len(dice) != 3:
        raise BadInput("there are %d dice; three are needed" % len(dice))
    for die, faces in enumerate(dice):
        if len(faces) != 6:
            raise BadInput("die %d has %d tags; six are needed" % (die + 1, len(faces)))
        for face, uid in enumerate(faces, 1):
            uid = uid.upper() if isinstance(uid, str) else uid
            check_uid(uid)
            if uid in registry:
                raise BadInput("tag %s is there twice" % uid)
            registry[uid] = _PLACES[die][face - 1]
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
    """Collects passes until two in a row agree on a result, or `tries` passes at one gain are used up.

    `step` is the step of the gain ladder (0 to `steps` - 1) for the next pass: a pass that sees two faces of one die is
    done again with less gain, where only the face that lies on the reader answers. One that sees a result is confirmed
    at the lowest gain: where the tag of the face below is dead, a neighbour may be the only one heard, but not there.
    `absent` lists the dice that the last pass did not see.
    """

    def __init__(self, registry, tries, steps=1):
        self._registry = registry
        self._tries = tries
        self._steps = steps
        self._last = None
        self._reason = None
        self._passes = 0
        self.step = 0
        self.absent = []

    def add(self, tags):
        """Take one pass. Returns None to read again (at `step`), else (values, None) or (None, void reason).

        Of the two passes that make a result the last one is always at the lowest gain, the first often at the highest.
        Two adjacent faces of one die that still answer at the lowest gain are a COCKED die, others TWO_FACES; once seen
        either holds. Passes that were each a result but never twice the same are NOT_SETTLED; else the last pass's
        reason holds.
        """
        values, reason = judge(tags, self._registry)
        if reason == FOREIGN_TAG:
            return None, reason
        seen = {self._registry[uid][0] for uid in tags or ()}
        self.absent = [die for die in range(3) if die not in seen] if tags is not None else []
        if reason == TWO_FACES:
            if self.step + 1 < self._steps:
                self._to_step(self.step + 1)
                self._last = None
                return None
            if self._is_cocked(tags):
                reason = COCKED
        if values is not None and self.step + 1 < self._steps:
            self._to_step(self._steps - 1)
            self._last = values
            return None
        self._passes += 1
        if values is not None and values == self._last:
            return values, None
        if reason in (TWO_FACES, COCKED):
            self._reason = reason
        elif self._reason in (TWO_FACES, COCKED):
            # What the dice are doing was seen; a pass that sees less of it, or not all dice, does not unsay it.
            pass
        elif values is not None and self._last is not None:
            self._reason = NOT_SETTLED
        elif reason is not None:
            self._reason = reason
        self._last = values
        if self._passes < self._tries:
            return None
        return None, self._reason or NOT_SETTLED

    def _to_step(self, step):
        self.step = step
        self._passes = 0
        self._reason = None

    def _is_cocked(self, tags):
        """True when every die that shows more than one face shows two adjacent ones: opposite ones add up to 7."""
        counts = [0, 0, 0]
        sums = [0, 0, 0]
        for uid in tags:
            die, face = self._registry[uid]
            counts[die] += 1
            sums[die] += face
        return max(counts) == 2 and not [die for die in range(3) if counts[die] == 2 and sums[die] == 7]


# A face that a die with good tags has not shown in so many results, (5/6)^76 < 1e-6, has a dead tag: that face's rolls
# are all void, which biases the game.
SUSPECT_AFTER = 76


class Tally:
    """How often each face was read since the boot, and how often each die alone was missing from a void roll."""

    def __init__(self):
        self.faces = [[0] * 6 for _ in range(3)]
        self.missing = [0, 0, 0]

    def result(self, values):
        """Count the faces that lay on the reader in a result that was read, once it may be known."""
        for die in range(3):
            self.faces[die][6 - values[die]] += 1

    def void(self, absent):
        """Count the dice missing from a roll that was void for that: one die alone is what a dead tag looks like."""
        if len(absent) == 1:
            self.missing[absent[0]] += 1

    def dead(self):
        """[[die 1..3, face 1..6], ...] whose tag never answers, by all appearance: a technician must look.

        The die was missing alone at least once, and SUSPECT_AFTER results have not shown the face.
        """
        found = []
        for die in range(3):
            faces = self.faces[die]
            if self.missing[die] and sum(faces) >= SUSPECT_AFTER:
                found += [[die + 1, face + 1] for face in range(6) if not faces[face]]
        return found

    def as_dict(self):
        """{"faces": three lists of reads by face 1 to 6, "missing": by die, "dead_tags": see `dead`}."""
        return {"faces": self.faces, "missing": self.missing, "dead_tags": self.dead()}
