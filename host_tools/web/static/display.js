// The table's display.
import { die, el, money, page, say, show, showNotices, showState, svg, watch } from "./common.js";

const at = (id) => document.getElementById(id);
const MARKS = { pays: "✓", loses: "✗", stays: "=", back: "↩" };

function arrow(clockwise) {
  // Three quarters of a circle, with its head where it ends.
  const drawing = svg("svg", { viewBox: "0 0 100 100", class: "arrow", "aria-hidden": "true" });
  const turned = svg("g", clockwise ? { transform: "translate(100 0) scale(-1 1)" } : {});
  turned.append(
    svg("path", { d: "M85 50A35 35 0 1 0 50 85", class: "line" }),
    svg("path", { d: "M46 70L74 86L46 100z", class: "head" }),
  );
  drawing.append(turned);
  return drawing;
}

function wagerRow(one) {
  const outcome = one.outcome
    ? el("span", { class: `outcome ${one.outcome}` },
        `${MARKS[one.outcome]} ${say(one.outcome)}${one.outcome === "pays" ? ` ${money(one.profit)}` : ""}`)
    : el("span", { class: "terms" }, one.terms);
  return el("li", {}, el("span", { class: "wager" }, `${one.name} ${money(one.stake)}`), outcome);
}

function seat(one, view) {
  const isFirst = view.deal && !view.dice.past && view.deal.start === one.position + 1;
  const classes = ["seat", `seat-${one.position}`];
  if (one.wagers.length) classes.push("taken");
  if (isFirst) classes.push("first");
  const marks = el("span", { class: "marks" });
  if (one.shakes) marks.append(el("span", { class: "mark shaker" }, `≋ ${say("shakes")}`));
  if (isFirst) marks.append(el("span", { class: "mark first" }, `▶ ${say("first")}`));
  else if (one.deal) marks.append(el("span", { class: "mark" }, say("dealt", { n: one.deal })));
  return el("div", { class: classes.join(" ") },
    el("h2", {}, el("span", { class: "number" }, el("span", { class: "hidden" }, `${say("position", { n: "" })} `),
      String(one.position)),
      one.net === null ? null : el("span", { class: "net" }, money(one.net, true)), marks),
    one.wagers.length
      ? el("ul", {}, ...one.wagers.map(wagerRow))
      : el("p", { class: "empty" }, "–", el("span", { class: "hidden" }, say("no_wagers"))));
}

function dealer(view) {
  const isFirst = view.deal && !view.dice.past && view.deal.start === 1;
  return el("div", { class: `seat bank${isFirst ? " first" : ""}` },
    el("h2", {}, el("span", {}, say("bank")),
      view.shaker === 0 && view.round && view.state !== "IDLE"
        ? el("span", { class: "mark shaker" }, `≋ ${say("shakes")}`) : null,
      isFirst ? el("span", { class: "mark first" }, `▶ ${say("first")}`) : null,
      view.deal && !view.dice.past && !isFirst ? el("span", { class: "mark" }, say("dealt", { n: view.deal.bank })) : null));
}

function felt(view) {
  const shown = view.dice;
  const dice = el("div", { class: `dice${shown ? "" : " covered"}${shown && shown.past ? " past" : ""}` });
  for (const place of [0, 1, 2]) dice.append(die(shown ? shown.values[place] : 0, shown && shown.eye === place, place + 1));
  const below = [];
  if (shown) {
    below.push(el("p", { class: "total" },
      shown.past ? el("span", { class: "past" }, say("last_round")) : null,
      el("span", {}, say("total")), el("strong", {}, String(shown.total))));
    if (shown.corrected) below.push(el("p", { class: "manual" }, `✎ ${say("corrected")}`));
    if (shown.manual) below.push(el("p", { class: "manual" }, `✎ ${say("manual", { reason: shown.manual })}`));
    if (!shown.past) below.push(el("p", { class: "deal" }, arrow(view.deal.clockwise), view.deal.text));
  }
  return el("div", { class: "felt" }, dice, ...below);
}

function miniature(roll) {
  const item = el("li", {}, el("span", { class: "of" }, String(roll.round)));
  const mark = roll.corrected ? say("corrected") : roll.manual ? say("by_hand") : "";
  const marked = mark ? el("span", { class: "by-hand", title: mark }, "✎", el("span", { class: "hidden" }, mark)) : "";
  if (!roll.dice) {
    item.append(el("span", { class: "void" }, `↻ ${say("void")}`), marked);
    return item;
  }
  roll.dice.forEach((value, place) => item.append(die(value, place === roll.eye, place + 1)));
  item.append(el("span", { class: "sum" }, String(roll.total)), marked);
  return item;
}

// Each seat's text as large as fits, where the seats have a height of their own; in hundredths of the screen's.
const SIZES = [3.2, 2.9, 2.6, 2.35, 2.1, 1.9, 1.7, 1.6, 1.5, 1.4];

function fit() {
  for (const one of at("table").querySelectorAll(".seat:not(.bank)")) {
    const name = `--${/seat-\d+/.exec(one.className)[0]}`;
    for (const size of SIZES) {
      at("table").style.setProperty(name, `${size}vh`);
      if (one.scrollHeight <= one.clientHeight + 1 && one.scrollWidth <= one.clientWidth) break;
    }
  }
}

addEventListener("resize", fit);

function seen(view) {
  document.body.dataset.state = view.state;
  document.body.classList.remove("lost");
  showState(at("state"), view);
  showNotices(at("notices"), view);
  show(at("round"), view.round ? el("span", {}, say("round", { n: view.round })) : null,
    view.round && view.state !== "IDLE" ? el("span", { class: view.bets_open ? "chip open" : "chip" },
      `${view.bets_open ? "◎" : "■"} ${say(view.bets_open ? "bets_open" : "bets_closed")}`) : null);
  if (view.seats) {
    at("table").className = view.mirrored ? "mirrored" : "";
    show(at("table"), dealer(view), felt(view), ...view.seats.map((one) => seat(one, view)));
    const streak = view.streak;
    show(at("streak"), ...(view.has_bonus ? [
      el("h2", {}, say("streak")), el("strong", {}, String(streak.count)),
      el("h2", {}, say("bonus")),
      streak.rows.length ? el("strong", {}, money(streak.pays)) : el("span", {}, say("no_bonus")),
      streak.rows.length ? el("ul", {}, ...streak.rows.map((row) =>
        el("li", {}, `${say("position", { n: row.position })}: ${money(row.stake)} → ${money(row.pays)}`))) : null,
    ] : []));
    at("streak").hidden = !view.has_bonus;
  }
  const rolls = [...view.rolls].reverse();
  show(at("rolls"), el("h2", {}, say("rolls")),
    rolls.length ? el("ol", { tabindex: "0", "aria-label": say("rolls") }, ...rolls.map(miniature))
      : el("p", {}, say("no_rolls")));
  show(at("uid"), el("span", {}, view.called));
  fit();
}

function lost() {
  document.body.classList.add("lost");
  showNotices(at("notices"), { notices: [] }, [{ kind: "lost", text: say("lost") }]);
}

watch(`/events?lang=${page.lang}`, seen, lost);
