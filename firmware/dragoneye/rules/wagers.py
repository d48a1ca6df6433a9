"""Dragon's eye wagers (NJ 13:69F-11.21): odds of one wager, settlement of a table, liability before the roll.

Dice are three values 1..6 in the order of the three dice; `eye` is the index 0..2 of the dragon's eye die. Positions
are player positions (the match wager's), not the deal count's. Money is integer cents. "Odds" is the profit in stakes:
30 means 30 to 1, and 0 means that the wager lost.
"""

from dragoneye.errors import BadInput
from dragoneye.rules.packs import WAGERS
from dragoneye.text import is_whole, show

SHAKER = "shaker"
PLAYER = "player"
ROLES = (SHAKER, PLAYER)

CASE_FIELDS = ("dice", "eye", "position", "wager", "stake", "role", "streak")
STREAK_MAX = 1000000
LEVELS = 3


def check_dice(dice):
    """Return `dice` as a tuple of three values 1..6, or raise BadInput."""
    if not isinstance(dice, (list, tuple)) or len(dice) != 3:
        raise BadInput("dice: %s; allowed: three values from 1 to 6" % show(dice))
    for die in dice:
        if not is_whole(die, 1, 6):
            raise BadInput("dice: a die shows %s; allowed: a whole number from 1 to 6" % show(die))
    return tuple(dice)


def check_eye(eye):
    """Return the index of the dragon's eye die, or raise BadInput."""
    if not is_whole(eye, 0, 2):
        raise BadInput("eye: %s; allowed: 0, 1 or 2, the place of the dragon's eye die among the three" % show(eye))
    return eye


def check_position(position, pack):
    """Return the player position, or raise BadInput."""
    if not is_whole(position, 1, pack["player_positions"]):
        raise BadInput(
            "position: %s; allowed: a whole number from 1 to %d (player positions)"
            % (show(position), pack["player_positions"])
        )
    return position


def check_wager(wager, position, pack):
    """Return the wager's name if this position may make it under this pack, or raise BadInput."""
    if wager not in WAGERS:
        raise BadInput("wager: %s; allowed: %s" % (show(wager), ", ".join(WAGERS)))
    if wager not in pack["wagers"]:
        raise BadInput(
            "wager: the rule pack %s has no %s wager; allowed: %s"
            % (pack.name, wager, ", ".join(pack["wagers"]) or "none (tiles only)")
        )
    if wager == "match" and position > 6:
        raise BadInput("position: %d cannot make a match wager; allowed: 1 to 6, the values of a die" % position)
    return wager


def check_stake(stake, wager, pack):
    """Return the stake in cents, or raise BadInput."""
    most = pack["stake_max"]
    if wager == "bonus" and pack["bonus_stake_max"] is not None:
        most = min(most, pack["bonus_stake_max"])
    if not is_whole(stake, 1, most):
        raise BadInput("stake: %s on %s; allowed: whole cents from 1 to %d" % (show(stake), wager, most))
    return stake


def check_streak(streak):
    """Return the number of triples in a row before this roll, or raise BadInput."""
    if not is_whole(streak, 0, STREAK_MAX):
        raise BadInput("streak: %s; allowed: a whole number from 0 to %d" % (show(streak), STREAK_MAX))
    return streak


def is_triple(dice):
    """True when the three dice show the same value."""
    return dice[0] == dice[1] == dice[2]


def bonus_level(streak, pack):
    """The level 1..3 that a triple reaches after `streak` triples in a row, or 0 when it pays no bonus.

    11.21(f) names one, two and three consecutive triples; what a fourth does is the pack's `after_third`: with `hold`
    there is no bonus until the streak ends. The stake stays up all the same, and is not lost to a triple.
    """
    if streak < LEVELS:
        return streak + 1
    if pack["after_third"] == "cap":
        return LEVELS
    if pack["after_third"] == "restart":
        return streak % LEVELS + 1
    return 0


def odds(wager, dice, eye, position, role, streak, pack):
    """The odds at which one wager is paid, 0 when it lost (11.21(a) to (f)), None for a bonus that only stays up.

    `role` is SHAKER for the position that shook this roll, else PLAYER; `streak` the triples in a row before this
    roll. Arguments must have passed the check functions above.
    """
    triple = is_triple(dice)
    if wager == "match":
        return pack["pays_match"] * dice.count(position)
    if wager == "even" or wager == "odd":
        wins = not triple and dice[eye] % 2 == (1 if wager == "odd" else 0)
        return pack["pays_" + wager] if wins else 0
    if wager == "double":
        # The two other dice: an index below zero counts from the end.
        equal = dice[eye - 1] == dice[eye - 2]
        wins = equal and not (triple and pack["double_on_triple"] == "loses")
        return pack["pays_double"] if wins else 0
    if not triple:
        return 0
    if wager == "triple":
        return pack["pays_triple"]
    level = bonus_level(streak, pack)
    ladder = pack["pays_bonus_shaker"] if role == SHAKER else pack["pays_bonus_other"]
    return ladder[level - 1] if level else None


def settle_one(wager, stake, dice, eye, position, role, streak, pack):
    """Settle one checked wager: {"won", "odds", "profit", "returned"} with returned = stake + profit, in cents.

    A winning bonus's stake stays up for the next roll (11.21(f)); it is counted as returned all the same, since it
    remains the player's. So is that of a bonus which no level pays: neither won nor lost, with a profit of 0.
    """
    paid = odds(wager, dice, eye, position, role, streak, pack)
    if paid is None:
        return {"won": False, "odds": 0, "profit": 0, "returned": stake}
    profit = paid * stake if paid else -stake
    return {"won": paid > 0, "odds": paid, "profit": profit, "returned": stake + profit}


def settle_case(case, pack):
    """Settle one case as a dict, with every field checked.

    Fields: dice, eye, position, wager, stake, role, streak. Returns settle_one's dict, and "level" for a bonus.
    Raises BadInput naming the field and what is allowed.
    """
    if not isinstance(case, dict):
        raise BadInput("a case is an object with dice, eye, position, wager, stake, role and streak")
    for key in CASE_FIELDS:
        if key not in case:
            raise BadInput("%s is missing; a case has dice, eye, position, wager, stake, role and streak" % key)
    for key in sorted(case):
        if key not in CASE_FIELDS + ("pack", "options"):
            raise BadInput(
                "%s is not a field of a case; there are dice, eye, position, wager, stake, role, streak, "
                "pack and options" % show(key)
            )
    dice = check_dice(case["dice"])
    eye = check_eye(case["eye"])
    position = check_position(case["position"], pack)
    wager = check_wager(case["wager"], position, pack)
    stake = check_stake(case["stake"], wager, pack)
    if case["role"] not in ROLES:
        raise BadInput("role: %s; allowed: shaker or player" % show(case["role"]))
    streak = check_streak(case["streak"])
    result = settle_one(wager, stake, dice, eye, position, case["role"], streak, pack)
    if wager == "bonus":
        result["level"] = bonus_level(streak, pack) if is_triple(dice) else 0
    return result


def settle_table(bets, dice, eye, shaker, streak, pack):
    """Settle every wager on the table.

    `bets` maps player position to {wager: stake}; `shaker` is the position that shook this roll, 0 for the dealer
    (then everybody is paid as a non-shaker, 11.21(f)). Returns a list of [position, wager, stake, odds] in order of
    position and wager; odds 0 is a loss. A bonus that only stays up (`after_third = hold`) has no row.
    """
    rows = []
    for position in sorted(bets):
        role = SHAKER if position == shaker else PLAYER
        stakes = bets[position]
        for wager in WAGERS:
            if wager in stakes:
                paid = odds(wager, dice, eye, position, role, streak, pack)
                if paid is not None:
                    rows.append([position, wager, stakes[wager], paid])
    return rows


def net_of(rows):
    """The players' net in cents over settle_table's rows: profits less lost stakes. The house's is its negative."""
    return sum([stake * paid if paid else -stake for _position, _wager, stake, paid in rows])


def liability(bets, shaker, streak, pack):
    """The most the table could owe on the coming roll: the largest sum of profits over all rolls, in cents.

    Lost stakes are not set against it: what is shown is what must be in the tray to pay every winner.
    """
    match = [0] * 7
    total = {"even": 0, "odd": 0, "double": 0, "triple": 0}
    bonus = 0
    level = bonus_level(streak, pack)
    for position in bets:
        ladder = pack["pays_bonus_shaker"] if position == shaker else pack["pays_bonus_other"]
        for wager in bets[position]:
            stake = bets[position][wager]
            if wager == "match":
                match[position] += stake * pack["pays_match"]
            elif wager == "bonus":
                bonus += stake * (ladder[level - 1] if level else 0)
            else:
                total[wager] += stake * pack["pays_" + wager]
    triple = total["triple"] + bonus
    if pack["double_on_triple"] != "loses":
        triple += total["double"]
    most = 0
    for eye in range(1, 7):
        parity = total["odd"] if eye % 2 else total["even"]
        other = max(match[:eye] + match[eye + 1 :])
        # The two other dice show another value twice, or one of them the eye's, or both; two different values that are
        # not the eye's owe no more than the dearer of them twice.
        pair = match[eye] + 2 * other + parity + total["double"]
        one = 2 * match[eye] + other + parity
        most = max(most, pair, one, 3 * match[eye] + triple)
    return most
