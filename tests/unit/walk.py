"""What the random walks over the round and over the controller share: the steps, and what may happen in between."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from dragoneye.protocol import BETTING, CLOSED, FAULT, IDLE, LOCKED, READING, SETTLED, SETTLING, SHAKING, TEST, VOID
from tests.unit.tables import SHAKE_MS, Json, Steps

values = st.integers(1, 6)
dice = st.one_of(st.lists(values, min_size=3, max_size=3), values.map(lambda value: [value] * 3))
positions = st.integers(1, 7)
stakes = st.dictionaries(st.sampled_from(["even", "double", "bonus", "bonus"]), st.sampled_from([0, 1, 99, 100, 101]))
REASON = {"reason": "a reason"}

requests = st.one_of(
    st.tuples(st.sampled_from(["close", "shake", "unlock", "finish", "resume", "end"]), st.just({})),
    st.tuples(st.sampled_from(["open", "shaker"]), st.fixed_dictionaries({"shaker": st.integers(0, 7)})),
    st.tuples(st.just("bets"), st.fixed_dictionaries({"position": positions, "wagers": stakes})),
    st.tuples(st.just("leave"), st.fixed_dictionaries({"position": positions})),
    st.tuples(st.just("void"), st.just(REASON)),
    st.tuples(st.just("manual"), dice.map(lambda value: {"dice": value, **REASON})),
    st.tuples(st.just("confirm"), st.tuples(st.integers(1, 3), dice).map(lambda p: {"token": p[0], "dice": p[1]})),
    st.tuples(st.just("clear"), st.sampled_from(["READER", "TAMPER"]).map(lambda code: {"code": code})),
    st.tuples(st.just("test"), st.booleans().map(lambda on: {"on": on})),
    st.tuples(st.just("selftest"), st.booleans().map(lambda start: {"start": start})),
    st.tuples(st.just("sensors"), st.just({})),
    st.tuples(
        st.just("changed"),
        st.booleans().map(lambda keep: {"unit": "dice", "keep": keep}),
    ),
)
inputs = st.one_of(
    st.tuples(st.sampled_from(["lid", "tamper", "supply", "service"]), st.booleans().map(lambda on: (on,))),
    st.tuples(st.just("button"), st.just(())),
    st.tuples(st.just("tested"), st.booleans().map(lambda ok: ([["lid", ok, "shut", "shut"]],))),
    st.tuples(st.just("set_fault"), st.sampled_from([("READER", "no answer"), ("TASK", "died")])),
)


class Walk(RuleBasedStateMachine):
    """Anything may happen at any time, but the natural next step comes often, so that rounds get somewhere."""

    @property
    def at(self) -> Steps:
        """What is walked on."""
        raise NotImplementedError

    def attempt(self, name: str, fields: Json) -> Any:
        """A request that may be refused."""
        raise NotImplementedError

    def next_step(self, dice: list[int]) -> None:
        at = self.at
        roll = at.table._roll
        state = at.state
        if state == IDLE:
            at.tell("lid", False)
            self.attempt("open", {"shaker": dice[0]})
            self.attempt("bets", {"position": dice[1], "wagers": {"bonus": 100, "even": 50}})
        elif state == BETTING:
            self.attempt("close", {})
        elif state in (CLOSED, VOID):
            at.tell("lid", False)
            at.tell("supply", False)
            at.wait_out()
            self.attempt("shake", {})
        elif state == SHAKING:
            at.now += SHAKE_MS
            at.tell("shaken", roll, True)
        elif state == SETTLING:
            at.wait(400)
        elif state == READING:
            at.show(roll, dice)
        elif state == LOCKED:
            at.open_lid()
        elif state == TEST:
            self.attempt("test", {"on": False})
        elif state == SETTLED:
            self.attempt("finish", {})
        elif state == FAULT:
            at.tell("tamper", False)
            self.attempt("clear", {"code": at.view()["fault"]})

    @rule(dice=dice)
    def go_on(self, dice: list[int]) -> None:
        self.next_step(dice)

    @rule(dice=dice)
    def play_on_to_the_end_of_the_round(self, dice: list[int]) -> None:
        for _ in range(10):
            self.next_step(dice)
            if self.at.state == IDLE:
                return

    @rule(request=requests)
    def request_anything(self, request: tuple[str, Json]) -> None:
        self.attempt(*request)

    @rule(told=inputs)
    def tell_anything(self, told: tuple[str, tuple[Any, ...]]) -> None:
        self.at.tell(told[0], *told[1])
