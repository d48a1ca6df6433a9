// The dealer's console. Forms are made once, so that what somebody types stays; a view only changes what is allowed.
import { die, el, money, page, say, show, showNotices, showState, watch } from "./common.js";

const at = (id) => document.getElementById(id);
const may = (name) => page.actions.includes(name);
let view = { can: [], seats: [], bets: {}, wagers: [], notices: [], rolls: [] };
let position = 1;

// -- asking -------------------------------------------------------------------------------------------------------

let busy = false;

function tell(kind, text) {
  show(at("message"), text ? el("p", { class: `notice ${kind}` }, text) : null);
}

function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// One press is one action: a second press while it is under way is not taken, and one that got no answer is sent
// again under the same key, so that it cannot happen twice.
// `step` is what of the table's progress was seen when it was decided.
async function ask(name, fields = {}, step = view.step) {
  if (busy) return null;
  busy = true;
  update();
  const body = JSON.stringify({ key: newKey(), do: name, step, fields });
  try {
    for (let tries = 0; ; tries += 1) {
      try {
        const answer = await fetch(`/dealer/do?lang=${page.lang}`, {
          method: "POST", headers: { "content-type": "application/json", "x-csrf": page.csrf }, body,
        });
        const told = await answer.json();
        if (answer.status === 401) {
          location.reload();
          return null;
        }
        if (!answer.ok) {
          tell("fault", told.error);
          return null;
        }
        tell("", "");
        return told.ok;
      } catch {
        if (tries >= 4) {
          tell("fault", say("lost_server"));
          return null;
        }
        await new Promise((done) => setTimeout(done, 500 * 2 ** tries));
      }
    }
  } finally {
    busy = false;
    update();
  }
}

// Asks for a confirmation of what cannot be taken back; what was seen when it was asked for is what is confirmed.
const sureWords = el("p", { id: "sure-words" });
const sureYes = el("button", { type: "button", class: "main" }, say("yes"));
const sureNo = el("button", { type: "button" }, say("cancel"));
const sureBox = el("dialog", { "aria-labelledby": "sure-words" }, sureWords, el("div", { class: "row" }, sureYes, sureNo));
document.body.append(sureBox);

function sure(words) {
  sureWords.textContent = words;
  sureBox.returnValue = "";
  sureBox.showModal();
  // A key that is held down, or a second click, does not confirm.
  sureNo.focus();
  return new Promise((done) => {
    sureYes.onclick = () => sureBox.close("yes");
    sureNo.onclick = () => sureBox.close("");
    sureBox.onclose = () => done(sureBox.returnValue === "yes");
  });
}

async function askSurely(words, name, fields) {
  const step = view.step;
  if (words && !await sure(words)) return null;
  return ask(name, fields, step);
}

// -- parts --------------------------------------------------------------------------------------------------------

const updates = [];

function update() {
  for (const one of updates) one();
}

// Without `press` it sends the form that it is in.
// `name` is the action that must be allowed for it, or empty.
function button(name, text, press, { main = false, when = () => true } = {}) {
  const made = el("button", { type: press ? "button" : "submit", class: main ? "main" : "" }, text);
  made.addEventListener("click", (event) => {
    if (made.getAttribute("aria-disabled") === "true") event.preventDefault();
    else if (press) press();
  });
  updates.push(() => {
    // Not `disabled`: a button that has the focus must not lose it while its answer is awaited.
    const off = busy || (name && !view.can.includes(name)) || !when();
    made.setAttribute("aria-disabled", String(off));
  });
  return made;
}

function field(label, input) {
  input.id ||= `field-${newKey()}`;
  return el("span", { class: "field" }, el("label", { for: input.id }, label), input);
}

function part(heading, open, ...children) {
  return el("details", { open, class: "part" }, el("summary", {}, el("h2", {}, heading)), ...children);
}

// Dollars as they are typed, as whole cents; null when it is no sum of money.
function toCents(text) {
  const found = /^\s*\$?\s*(\d{1,12})(?:[.,](\d{1,2}))?\s*$/.exec(text);
  return found ? Number(found[1]) * 100 + Number((found[2] ?? "").padEnd(2, "0")) : null;
}

// The same of a stake; null, and told in `of` whose it is, when it is none or more than the table takes on a wager.
function stakeOf(text, wager, of) {
  const sum = toCents(text);
  const most = view.most?.[wager] ?? view.most?.[""] ?? 0;
  if (sum === null) tell("fault", say("bad_money", { text: `${of} ${text}`.trim() }));
  else if (sum > most) tell("fault", say("too_much", { text: `${of} ${text}`.trim(), most: money(most) }));
  return sum === null || sum > most ? null : sum;
}

// A whole number as it is typed; null when it is none.
function toWhole(text) {
  return /^\s*[1-9]\d{0,8}\s*$/.test(text) ? Number(text) : null;
}

function stakesText(stakes) {
  return view.wagers.filter(([wager]) => stakes[wager]).map(([wager, name]) => `${name} ${money(stakes[wager])}`).join(", ")
    || say("no_wagers");
}

function toDollars(cents) {
  return cents % 100 ? (cents / 100).toFixed(2) : String(cents / 100);
}

function shakerChoice() {
  const made = el("select");
  updates.push(() => {
    if (made.options.length === view.positions + 1) return;
    const before = made.value;
    made.replaceChildren(el("option", { value: "0" }, say("dealer_shakes")));
    for (let n = 1; n <= (view.positions ?? 0); n += 1) made.append(el("option", { value: n }, say("position", { n })));
    made.value = before || "0";
  });
  return made;
}

// -- the next step ------------------------------------------------------------------------------------------------

async function closeBets() {
  const { step } = view;
  const told = drafts.told();
  if (told && !await sure(say("close_unset", { wagers: told }))) return;
  // Without it, as was confirmed.
  drafts.drop();
  await ask("close", {}, step);
}

function nextStep() {
  const shaker = shakerChoice();
  const keep = el("input", { type: "checkbox", id: "keep-dice" });
  const opening = button("open", say("open"),
    () => ask("open", { shaker: Number(shaker.value), ...(keep.checked ? { keep_dice: true } : {}) }), { main: true });
  const open = el("div", { class: "row" }, field(say("who_shakes"), shaker), opening);
  const keeping = el("span", { class: "field" }, keep, el("label", { for: "keep-dice" }, say("keep_dice")));
  open.append(keeping);
  const shake = button("shake", say("shake"), () => ask("shake"), { main: true });
  const rows = {
    open,
    close: button("close", say("close"), closeBets, { main: true }),
    shake,
    unlock: button("unlock", say("unlock"), () => ask("unlock"), { main: true }),
    finish: button("finish", say("finish"), () => ask("finish"), { main: true, when: () => !view.lid_open }),
  };
  const said = el("p", { class: "said" });
  // Alt+N presses what comes next, wherever the focus is; held down it is one press.
  const keyed = { ...rows, open: opening };
  let next = null;
  addEventListener("keydown", (event) => {
    if (event.code !== "KeyN" || !event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (!event.repeat && next && !sureBox.open) next.click();
  });
  updates.push(() => {
    next = keyed[{ IDLE: "open", BETTING: view.can.includes("shake") ? "shake" : "close", CLOSED: "shake", VOID: "shake",
      LOCKED: view.bets_open ? "close" : "unlock", SETTLED: "finish" }[view.state]] ?? null;
    for (const one of Object.values(keyed)) {
      if (one === next) one.setAttribute("aria-keyshortcuts", "Alt+N");
      else one.removeAttribute("aria-keyshortcuts");
    }
    for (const [name, row] of Object.entries(rows)) row.hidden = !may(name);
    rows.open.hidden = view.state !== "IDLE" || !may("open");
    keeping.hidden = !view.dice_alarm || !may("void");
    rows.close.hidden = !view.bets_open || !may("close");
    rows.shake.hidden = !["BETTING", "CLOSED", "VOID"].includes(view.state) || view.call || !may("shake")
      || (view.state === "BETTING" && !view.can.includes("shake"));
    shake.textContent = say(view.state === "VOID" ? "reshake" : "shake");
    rows.unlock.hidden = !["LOCKED", "FAULT", "TEST", "IDLE", "SETTLED"].includes(view.state) || view.bets_open || !may("unlock");
    rows.unlock.classList.toggle("main", view.state === "LOCKED");
    rows.finish.hidden = view.state !== "SETTLED" || !may("finish");
    let words = "";
    if (["SHAKING", "SETTLING", "READING"].includes(view.state)) words = say("wait");
    else if (view.call) words = say("call");
    else if (view.state === "LOCKED" && !view.bets_open) words = say("open_lid");
    else if (view.lid_open && ["SETTLED", "CLOSED", "VOID", "BETTING"].includes(view.state)) words = say("shut_lid");
    if (said.textContent !== words) said.textContent = words;
  });
  return el("section", { class: "part next" }, el("h2", {}, say("next")), el("kbd", {}, "Alt+N"),
    el("div", { class: "row" }, ...Object.values(rows)), said);
}

// -- wagers -------------------------------------------------------------------------------------------------------

// A field for the stake of each wager that there is.
function stakeFields() {
  const inputs = new Map();
  const fields = el("div", { class: "row" });
  updates.push(() => {
    if (view.wagers.map(([wager]) => wager).join() === [...inputs.keys()].join()) return;
    inputs.clear();
    fields.replaceChildren();
    for (const [wager, name] of view.wagers) {
      const input = el("input", { type: "text", inputmode: "decimal", size: 7, autocomplete: "off", name: wager });
      inputs.set(wager, input);
      fields.append(field(`${name} ($)`, input));
    }
  });
  return { inputs, fields };
}

// The stakes as they are typed, in cents by wager; null, and told, when one is no sum of money. An empty bonus says
// that there is none only where there was one (`hadBonus`).
function stakesOf(inputs, hadBonus) {
  const chosen = {};
  for (const [wager, input] of inputs) {
    const text = input.value.trim();
    const sum = text ? stakeOf(text, wager, view.wagers.find(([one]) => one === wager)[1]) : 0;
    if (sum === null) {
      input.focus();
      return null;
    }
    if (sum || (wager === "bonus" && (text || hadBonus))) chosen[wager] = sum;
  }
  return chosen;
}

// What was typed and is not set yet, by position: {wager: text}. It outlives a page that is loaded again, in this tab.
const drafts = {
  of: {},
  round: null,
  KEY: "wagers",

  keep() {
    try {
      sessionStorage.setItem(this.KEY, JSON.stringify({ table: view.table, round: this.round, of: this.of }));
    } catch {
      // A browser that stores nothing.
    }
  },

  // Of the round that is open; those of another are gone.
  begin(round) {
    if (round === this.round) return;
    this.round = round;
    this.of = {};
    try {
      const found = JSON.parse(sessionStorage.getItem(this.KEY));
      if (found.table === view.table && found.round === round) {
        for (const [n, texts] of Object.entries(found.of)) {
          for (const [wager, text] of Object.entries(texts)) this.put(n, wager, String(text));
        }
      }
    } catch {
      // There is none.
    }
  },

  put(n, wager, text) {
    const differs = (text.trim() ? toCents(text) : 0) !== (view.bets[n]?.[wager] ?? 0);
    if (differs) (this.of[n] ??= {})[wager] = text;
    else if (this.of[n]) delete this.of[n][wager];
    if (this.of[n] && !Object.keys(this.of[n]).length) delete this.of[n];
  },

  // What the table has meanwhile is no draft any more.
  prune() {
    for (const [n, texts] of Object.entries(this.of)) {
      for (const [wager, text] of Object.entries(texts)) this.put(n, wager, text);
    }
  },

  drop(n) {
    if (n === undefined) this.of = {};
    else delete this.of[n];
    this.keep();
  },

  // What is not set, in words; empty when all is.
  told(n) {
    const names = new Map(view.wagers);
    return Object.entries(this.of).filter(([one]) => n === undefined || Number(one) === n)
      .map(([one, texts]) => `${say("position", { n: one })}: ${Object.entries(texts)
        .map(([wager, text]) => `${names.get(wager) ?? wager} ${text.trim() || "0"}`).join(", ")}`).join("; ");
  },
};

function wagers() {
  const tabs = el("div", { class: "row seats", role: "group", "aria-label": say("wagers") });
  const { inputs, fields } = stakeFields();
  const legend = el("legend");
  const unset = el("p", { class: "unset", role: "status" });
  const form = el("form", { onsubmit: submit }, el("fieldset", {}, legend, fields,
    el("div", { class: "row" }, button("bets", say("set_wagers"), null, { main: true })), unset));
  // The field that is being typed in.
  let typed = null;
  form.addEventListener("input", ({ target }) => {
    typed = target;
    drafts.put(position, target.name, target.value);
    drafts.keep();
    update();
  });
  form.addEventListener("focusout", () => { typed = null; update(); });

  // What the table has, or what was typed instead while bets are open.
  function fill() {
    for (const [wager, input] of inputs) {
      const draft = drafts.of[position]?.[wager];
      const cents = view.bets[position]?.[wager];
      const text = draft ?? (cents ? toDollars(cents) : "");
      if (input !== typed && input.value !== text) input.value = text;
      input.classList.toggle("unset", draft !== undefined);
    }
  }

  async function submit(event) {
    event.preventDefault();
    const chosen = stakesOf(inputs, (view.bets[position] ?? {}).bonus);
    if (!chosen) return;
    const n = position;
    const told = await ask("bets", { position: n, wagers: chosen });
    if (!told) return;
    view.bets = { ...view.bets, [n]: told.wagers };
    typed = null;
    drafts.drop(n);
    update();
    tell("good", say("set_done", { n }));
  }

  updates.push(() => {
    if (view.round !== undefined) drafts.begin(view.round);
    drafts.prune();
    if (view.state && view.state !== "OFFLINE" && view.state !== "FAULT" && !view.bets_open && drafts.told()) {
      // Closed by somebody else, or by the lid.
      tell("fault", say("closed_unset", { wagers: drafts.told() }));
      typed = null;
      drafts.drop();
    }
    for (const [wager, input] of inputs) {
      input.readOnly = !view.can.includes("bets") || (wager === "match" && position > 6);
    }
    while (tabs.children.length > (view.positions ?? 0)) tabs.lastChild.remove();
    while (tabs.children.length < (view.positions ?? 0)) {
      const n = tabs.children.length + 1;
      tabs.append(el("button", { type: "button", onclick: () => { position = n; typed = null; update(); } }));
    }
    [...tabs.children].forEach((tab, index) => {
      const stakes = Object.entries(view.bets[index + 1] ?? {});
      const sum = stakes.reduce((all, [, cents]) => all + cents, 0);
      const isUnset = drafts.of[index + 1] !== undefined;
      const text = `${index + 1}${sum ? ` · ${money(sum)}` : ""}${isUnset ? " ✎" : ""}`;
      if (tab.textContent !== text) tab.textContent = text;
      tab.setAttribute("aria-pressed", String(index + 1 === position));
      tab.setAttribute("aria-label", `${say("position", { n: index + 1 })} ${sum ? money(sum) : say("no_wagers")}${
        isUnset ? `, ${say("not_set")}` : ""}`);
    });
    legend.textContent = say("position", { n: position });
    fill();
    const told = drafts.told(position);
    const words = told ? say("unset", { wagers: told, stands: stakesText(view.bets[position] ?? {}) }) : "";
    if (unset.textContent !== words) unset.textContent = words;
  });
  const owed = el("p", { class: "said" });
  updates.push(() => { owed.textContent = view.bets_open ? say("owed", { sum: money(view.liability) }) : ""; });
  const shaker = shakerChoice();
  let shook = "";
  updates.push(() => {
    // Who shakes now, unless somebody is choosing another.
    const now = `${view.round}.${view.shaker}`;
    if (now !== shook && view.shaker !== undefined) {
      shook = now;
      shaker.value = String(view.shaker);
    }
  });
  const change = el("div", { class: "row" }, field(say("who_shakes"), shaker),
    button("shaker", say("change_shaker"), () => ask("shaker", { shaker: Number(shaker.value) })));
  const leaving = button("leave", "", () => {
    const n = position;
    const holds = view.parts?.includes(n);
    const has = Object.keys(view.bets[n] ?? {}).length;
    const words = holds ? say("leave_part", { n, wagers: stakesText(view.bets[n] ?? {}) })
      : has ? say("leave_wagers", { n, wagers: stakesText(view.bets[n]) }) : "";
    return askSurely(words, "leave", { position: n });
  });
  updates.push(() => {
    const words = say("leave", { n: position });
    if (leaving.textContent !== words) leaving.textContent = words;
  });
  return part(say("wagers"), true, tabs, form, owed, change, el("div", { class: "row apart" }, leaving));
}

// -- the result ---------------------------------------------------------------------------------------------------

function result() {
  const shown = el("section", { class: "part result", "aria-live": "polite" });
  updates.push(() => {
    shown.hidden = !view.dice || view.dice.past;
    if (shown.hidden) return;
    const paid = view.seats.filter((one) => one.net !== null);
    show(shown,
      el("div", { class: "dice" }, ...view.dice.values.map((value, place) => die(value, place === view.dice.eye, place + 1))),
      el("p", { class: "total" }, `${say("total")} `, el("strong", {}, String(view.dice.total)), ` · ${view.deal.text}`),
      view.dice.manual ? el("p", {}, say("manual", { reason: view.dice.manual })) : null,
      paid.length ? el("table", {}, ...paid.map((one) => el("tbody", {},
        el("tr", {}, el("th", { scope: "rowgroup", colspan: 2 }, say("position", { n: one.position }), " ",
          el("span", { class: "net" }, money(one.net, true)))),
        ...one.wagers.map((row) => el("tr", {}, el("td", {}, `${row.name} ${money(row.stake)}`),
          el("td", { class: `outcome ${row.outcome}` },
            `${MARKS[row.outcome]} ${say(row.outcome)}${row.outcome === "pays" ? ` ${money(row.profit)}` : ""}`)))))) : null);
  });
  return shown;
}

// -- rounds that are over -------------------------------------------------------------------------------------------

const MARKS = { pays: "✓", loses: "✗", stays: "=", back: "↩" };

function wagerText(row) {
  return `${row.name} ${money(row.stake)} ${MARKS[row.outcome]} ${say(row.outcome)}${
    row.outcome === "pays" ? ` ${money(row.profit)}` : ""}`;
}

// From the record, whatever the table does now: what is owed is not gone with the power or the cable.
function lastRounds() {
  const list = el("ol", { class: "over" });
  const whole = part(say("over"), true, list);
  updates.push(() => {
    const live = ["SETTLED", "REVEALED"].includes(view.state) ? view.round : null;
    const over = [...(view.over ?? [])].reverse().filter((one) => one.round !== live);
    whole.hidden = !over.length;
    show(list, ...over.map((one) => el("li", {},
      el("p", {}, el("strong", {}, say("round", { n: one.round })), " · ",
        one.status === "void" ? say(one.known ? "void_back" : "void_unknown")
          : `${one.dice.map((value, place) => (place === one.eye ? `«${value}»` : value)).join(" ")} · ${say("total")} ${
            one.total} · ${say("table_net", { net: money(one.net, true) })}`,
        one.corrected ? ` · ✎ ${say("corrected")}` : "", one.manual ? ` · ✎ ${say("by_hand")}` : ""),
      el("ul", {},
        ...one.seats.map((seat) => el("li", {}, `${say("position", { n: seat.position })}: ${
          seat.wagers.map(wagerText).join(", ")}`, one.status === "void" ? "" : el("strong", {}, ` ${money(seat.net, true)}`))),
        ...(one.tiles ? one.tiles.players.map((player) => el("li", {}, `${say("tiles")}, ${
          say("position", { n: player.position })}: ${money(player.stake)} ${say(player.result)} `,
          el("strong", {}, money(player.net, true)))) : [])))));
  });
  return whole;
}

// -- tile hands ---------------------------------------------------------------------------------------------------

const DRAFT = "tile hands";

function tileHands() {
  // Hand 0 is the bank's; each holds up to four faces, the first two the high hand.
  let hands = [];
  let stakes = [];
  let active = 0;
  let house = false;
  let round = null;
  const names = new Map(page.tiles.map(([face, name]) => [face, name]));
  const choose = el("div", { class: "row", role: "group", "aria-label": say("hand") });
  const slots = el("div", { class: "slots" });
  const rack = el("div", { class: "rack", role: "group", "aria-label": say("tiles") });
  const stake = el("input", { type: "text", inputmode: "decimal", size: 7, autocomplete: "off" });
  const stakeField = field(say("stake"), stake);
  const way = el("input", { type: "checkbox", id: "house-way" });
  const wayField = el("span", { class: "field" }, way, el("label", { for: "house-way" }, say("set_by_house")));
  const shown = el("div", { "aria-live": "polite" });
  const heading = el("p", { class: "said" });
  const tiles = page.tiles.map(([face, name, copies]) => {
    const made = el("button", { type: "button", class: "tile", onclick: () => add(face) });
    made.append(pips(face), el("span", { class: "left" }), el("span", { class: "hidden" }, name));
    rack.append(made);
    return { face, copies, made };
  });
  stake.addEventListener("input", () => { stakes[active] = stake.value; clearShown(); keepDraft(); });
  way.addEventListener("change", () => { house = way.checked; clearShown(); draw(); });

  function pips(face) {
    return el("span", { class: "pips", "aria-hidden": "true" }, el("b", {}, face[0]), el("b", {}, face[2]));
  }

  function clearShown() {
    show(shown);
  }

  // What was tapped in outlives a page that is loaded again, or a browser that has gone; another round ends it.
  function keepDraft() {
    try {
      localStorage.setItem(DRAFT, JSON.stringify({ table: view.table, round, hands, stakes, house }));
    } catch {
      // A browser that stores nothing.
    }
  }

  function draft() {
    try {
      const found = JSON.parse(localStorage.getItem(DRAFT));
      const whole = found.table === view.table && found.round === round && found.hands.length === hands.length
        && found.hands.every((hand) => hand.length <= 4 && hand.every((face) => names.has(face)));
      return whole ? found : null;
    } catch {
      return null;
    }
  }

  function used(face) {
    return hands.flat().filter((one) => one === face).length;
  }

  function add(face) {
    const left = page.tiles.find(([one]) => one === face)[2] - used(face);
    if (!left || hands[active].length >= 4) return;
    hands[active].push(face);
    clearShown();
    draw();
  }

  function back(index) {
    hands[active].splice(index, 1);
    clearShown();
    draw();
    (slots.querySelectorAll("button")[Math.min(index, 3)] ?? rack.firstChild).focus();
  }

  function title(index) {
    return index ? say("position", { n: index }) : say("bank");
  }

  function draw() {
    keepDraft();
    [...choose.children].forEach((one, index) => {
      const text = `${title(index)} ${hands[index].length}/4`;
      if (one.textContent !== text) one.textContent = text;
      one.setAttribute("aria-pressed", String(index === active));
    });
    stakeField.hidden = active === 0;
    wayField.hidden = active !== 0;
    if (stake.value !== (stakes[active] ?? "")) stake.value = stakes[active] ?? "";
    const places = [0, 1, 2, 3].map((index) => {
      const face = hands[active][index];
      return face
        ? el("button", { type: "button", class: "tile", onclick: () => back(index),
            "aria-label": say("take_back", { tile: names.get(face) }) }, pips(face))
        : el("span", { class: "tile empty" }, el("span", { class: "hidden" }, say("free")));
    });
    const words = active === 0 && house ? ["", ""] : [say("high"), say("low")];
    slots.replaceChildren(el("span", {}, words[0]), places[0], places[1], el("span", {}, words[1]), places[2], places[3]);
    for (const { face, copies, made } of tiles) {
      const left = copies - used(face);
      made.setAttribute("aria-disabled", String(!left || hands[active].length >= 4));
      made.querySelector(".left").textContent = left ? `×${left}` : "–";
    }
  }

  function asHand(faces, setByHouse) {
    return setByHouse ? faces : { high: faces.slice(0, 2), low: faces.slice(2) };
  }

  async function send(keep) {
    const players = [];
    for (let n = 1; n < hands.length; n += 1) {
      if (!hands[n].length) continue;
      const sum = stakeOf(stakes[n] ?? "", "", title(n));
      if (sum === null) return;
      players.push({ position: n, stake: sum, hands: asHand(hands[n], false) });
    }
    const told = await ask("tiles", { round, bank: asHand(hands[0], house), players, ...(keep ? { keep: true } : {}) });
    if (told) showHands(told);
  }

  function showHands(told) {
    const row = (one, index) => el("tr", {},
      el("th", { scope: "row" }, say("position", { n: one.position })),
      el("td", {}, `${one.high.join("/")} · ${one.low.join("/")}`),
      el("td", {}, money(one.stake)),
      el("td", { class: one.result === "win" ? "outcome pays" : "outcome" }, say(one.result)),
      el("td", { class: "net" }, money(one.net, true)),
      el("td", {}, one.commission ? money(one.commission) : ""),
      told.signals ? el("td", {}, told.signals[index]) : null);
    show(shown, el("table", {},
      el("caption", {}, `${say("settled_hands")}${told.kept === false ? "" : ` · ${say("kept")}`}`),
      el("thead", {}, el("tr", {}, ...["hand", "tiles", "bet", "result", "net", "commission",
        ...(told.signals ? ["signal"] : [])].map((key) => el("th", { scope: "col" }, say(key))))),
      el("tbody", {},
        el("tr", {}, el("th", { scope: "row" }, say("bank")), el("td", {}, `${told.bank.high.join("/")} · ${told.bank.low.join("/")}`)),
        ...told.players.map(row))));
  }

  const entry = el("div", {}, choose, el("div", { class: "row" }, stakeField, wayField), slots, rack,
    el("div", { class: "row" },
      button("tiles", say("settle"), () => send(false)),
      button("tiles", say("keep_hands"), () => send(true), { main: true })));
  const whole = part(say("tiles"), false, heading, entry, shown);
  updates.push(() => {
    entry.hidden = view.tiles_round === null || view.tiles_round === undefined;
    whole.hidden = entry.hidden && !view.hands;
    if (!entry.hidden && view.tiles_round !== round) {
      round = view.tiles_round;
      hands = Array.from({ length: (view.tile_positions ?? 0) + 1 }, () => []);
      stakes = [];
      active = 0;
      const before = draft();
      if (before) ({ hands, stakes, house } = before);
      way.checked = house;
      choose.replaceChildren(...hands.map((_hand, index) =>
        el("button", { type: "button", onclick: () => { active = index; draw(); } })));
      clearShown();
      draw();
    }
    const words = entry.hidden ? (view.hands ? say("tiles_of", { n: view.hands.round }) : "") : say("tiles_of", { n: round });
    if (heading.textContent !== words) heading.textContent = words;
    if (entry.hidden && view.hands && !shown.firstChild) showHands(view.hands);
  });
  return whole;
}

// -- the supervisor's ---------------------------------------------------------------------------------------------

function diceInputs() {
  return [1, 2, 3].map(() => el("input", { type: "text", inputmode: "numeric", size: 2, maxlength: 1, autocomplete: "off" }));
}

function diceOf(inputs) {
  const dice = inputs.map((input) => Number(input.value.trim() || 0));
  return dice.every((value) => Number.isInteger(value) && value >= 1 && value <= 6) ? dice : null;
}

function manualEntry() {
  const first = diceInputs();
  const second = diceInputs();
  const reason = el("input", { type: "text", size: 30, maxlength: 80, autocomplete: "off" });
  const echo = el("div");
  let token = null;
  const label = (inputs) => inputs.map((input, index) => field(say("die_n", { n: index + 1 }), input));
  const again = el("div", { class: "row", hidden: true }, ...label(second),
    button("confirm", say("confirm"), confirm, { main: true }),
    el("button", { type: "button", onclick: clear }, say("cancel")));

  async function enter() {
    const dice = diceOf(first);
    if (!dice) return tell("fault", say("bad_dice"));
    const told = await ask("manual", { dice, reason: reason.value.trim() });
    if (!told) return undefined;
    token = told.token;
    show(echo, el("p", { class: "said" }, say("echo", { dice: told.dice.join(" "), total: told.total, eye: told.eye + 1 })),
      el("div", { class: "dice" }, ...told.dice.map((value, place) => die(value, place === told.eye, place + 1))));
    again.hidden = false;
    second[0].focus();
    return undefined;
  }

  async function confirm() {
    const dice = diceOf(second);
    if (!dice) return tell("fault", say("bad_dice"));
    if (await ask("confirm", { token, dice })) clear();
    return undefined;
  }

  function clear() {
    token = null;
    again.hidden = true;
    show(echo);
    for (const input of [...first, ...second, reason]) input.value = "";
  }

  updates.push(() => {
    if (token !== null && !view.can.includes("manual")) clear();
  });
  return el("fieldset", {}, el("legend", {}, say("enter_manual")),
    el("div", { class: "row" }, ...label(first), field(say("reason"), reason), button("manual", say("enter"), enter)), echo, again);
}

function correction() {
  const number = el("input", { type: "text", inputmode: "numeric", size: 7, autocomplete: "off" });
  const what = el("select", {}, ...["dice", "bets", "void"].map((one) => el("option", { value: one }, say(`wrong_${one}`))));
  const reason = el("input", { type: "text", size: 30, maxlength: 80, autocomplete: "off" });
  const dice = diceInputs();
  const seat = el("select");
  const { inputs, fields } = stakeFields();
  const whose = el("div", { class: "row" }, field(say("position", { n: "" }).trim(), seat));
  const diceRow = el("div", { class: "row" }, ...dice.map((input, index) => field(say("die_n", { n: index + 1 }), input)));
  const stands = el("p", { class: "said", "aria-live": "polite" });
  const all = el("p", { class: "said" });
  const change = el("div", { "aria-live": "polite" });
  const yes = button("correct", "", correct, { main: true });
  const confirming = el("div", { class: "row", hidden: true },
    yes,
    el("button", { type: "button", onclick: () => { forget(); update(); } }, say("cancel")));
  let offered = null;
  // How the round in the form stands: its number and what the record is asked for again by, what it said.
  let asked = "";
  let found = null;
  let filled = "";
  // What was shown and is to be confirmed.
  let told = null;

  function forget() {
    told = null;
    confirming.hidden = true;
    show(change);
  }

  const whole = el("fieldset", { oninput: forget }, el("legend", {}, say("correct_round")),
    el("div", { class: "row" }, field(say("round_number"), number), field(say("wrong"), what)), stands,
    diceRow, whose, all, fields,
    el("div", { class: "row" }, field(say("reason"), reason), button("correct", say("correct"), preview)), change, confirming);
  whole.addEventListener("input", update);

  async function look() {
    const n = toWhole(number.value);
    // Again when the record of it has changed.
    const now = n === null ? "" : JSON.stringify([n, view.over, view.rolls.find((one) => one.round === n)]);
    if (now === asked) return;
    asked = now;
    found = null;
    if (n === null) return;
    const answer = await fetch(`/dealer/round/${n}?lang=${page.lang}`).catch(() => null);
    const json = answer ? await answer.json().catch(() => null) : null;
    if (asked !== now) return;
    found = json ?? { error: say("lost_server") };
    update();
  }

  function standing(one) {
    if (one.void) return say("void");
    return one.dice ? say("stands", { dice: one.dice.join(" "), total: one.total }) : say("stands_unknown");
  }

  async function preview() {
    const n = toWhole(number.value);
    if (n === null) return tell("fault", say("bad_round", { text: number.value.trim() }));
    const wanted = { round: n, what: what.value, reason: reason.value.trim() };
    if (what.value === "dice") {
      wanted.dice = diceOf(dice);
      if (!wanted.dice) return tell("fault", say("bad_dice"));
    } else if (what.value === "bets") {
      wanted.position = Number(seat.value);
      wanted.wagers = stakesOf(inputs, false);
      if (!wanted.wagers) return undefined;
    }
    const shown = await ask("correct", { ...wanted, preview: true });
    if (!shown) return undefined;
    // What the table would have refused is corrected so by the same press, once its words were seen.
    told = { wanted: shown.doubt ? { ...wanted, anyway: true } : wanted, step: view.step };
    yes.textContent = say(shown.doubt ? "correct_anyway" : "correct_yes");
    const n2 = wanted.position;
    const cells = (one) => [standing(one),
      ...(n2 ? [stakesText(one.bets[n2] ?? {}), one.nets ? money(one.nets[n2] ?? 0, true) : "?"] : []),
      one.net === null ? "?" : money(one.net, true)];
    const heads = ["result", ...(n2 ? ["wagers_of", "net_of"] : []), "nets_table"];
    const before = cells(shown.before);
    const after = cells(shown.after);
    show(change, el("table", {},
      el("caption", {}, say("round", { n })),
      el("thead", {}, el("tr", {}, el("td"), el("th", { scope: "col" }, say("before")), el("th", { scope: "col" }, say("after")))),
      el("tbody", {}, ...heads.map((key, index) => el("tr", {},
        el("th", { scope: "row" }, say(key, { n: n2 })), el("td", {}, before[index]), el("td", {}, after[index]))))),
    el("p", {}, shown.change === null ? say("change_unknown") : say("change", { sum: money(shown.change, true) })),
    shown.doubt ? el("p", { class: "notice fault" }, shown.doubt) : null);
    confirming.hidden = false;
    update();
    confirming.firstChild.focus();
    return undefined;
  }

  async function correct() {
    if (!told) return;
    const { wanted, step } = told;
    const done = await ask("correct", wanted, step);
    if (!done) return;
    forget();
    filled = asked = "";
    for (const input of [...dice, reason]) input.value = "";
    tell("good", [say("correct_done", { n: wanted.round }), done.said].filter(Boolean).join("; "));
    update();
  }

  updates.push(() => {
    const settled = view.rolls.filter((one) => one.dice);
    const newest = settled.length ? String(settled[settled.length - 1].round) : "";
    // The newest one, unless somebody has named another.
    if (number.value === (offered ?? "") && newest !== offered) number.value = offered = newest;
    look();
    const words = !found ? "" : found.error ?? standing(found);
    if (stands.textContent !== words) stands.textContent = words;
    diceRow.hidden = what.value !== "dice";
    whose.hidden = fields.hidden = all.hidden = what.value !== "bets";
    while (seat.options.length < (view.positions ?? 0)) {
      const n = seat.options.length + 1;
      seat.append(el("option", { value: n }, say("position", { n })));
    }
    const n = Number(seat.value);
    const stakes = found?.bets?.[n] ?? {};
    const now = found?.bets && inputs.size ? `${number.value}.${n}.${JSON.stringify(stakes)}` : "";
    if (now && now !== filled) {
      filled = now;
      for (const [wager, input] of inputs) input.value = stakes[wager] ? toDollars(stakes[wager]) : "";
    }
    const words2 = say("all_wagers", { n });
    if (all.textContent !== words2) all.textContent = words2;
  });
  return whole;
}

function supervisor() {
  const reason = el("input", { type: "text", size: 30, maxlength: 80, autocomplete: "off" });
  const keep = el("input", { type: "checkbox", id: "keep-streak" });
  const clearing = button("clear", "", () => ask("clear", { code: view.fault }));
  updates.push(() => {
    clearing.hidden = !view.fault;
    const words = say("clear", { code: view.fault ?? "" });
    if (clearing.textContent !== words) clearing.textContent = words;
  });
  // What ends with a running streak, in words; empty without one.
  function atStake(kept) {
    const count = view.streak?.count;
    const rows = (view.streak?.rows ?? []).map((row) => `${say("position", { n: row.position })} ${money(row.stake)}`);
    return count ? say(kept ? "streak_kept" : "streak_ends", { count, parts: rows.join(", ") || say("no_bonus") }) : "";
  }

  const changed = (unit) => button("changed", say(`changed_${unit}`),
    () => askSurely(atStake(keep.checked), "changed", { unit, keep: keep.checked }));
  return part(say("supervisor"), true,
    el("div", { class: "row" }, clearing, button("resume", say("resume"), () => ask("resume"))),
    el("div", { class: "row" }, field(say("reason"), reason),
      button("void", say("void_round"), async () => { if (await ask("void", { reason: reason.value.trim() })) reason.value = ""; })),
    manualEntry(),
    correction(),
    el("div", { class: "row" },
      changed("dice"), changed("shaker"),
      el("span", { class: "field" }, keep, el("label", { for: "keep-streak" }, say("keep_streak"))),
      button("end", say("end"), () => askSurely(atStake(false), "end"))));
}

function technician() {
  const shown = el("pre", { tabindex: "0", "aria-live": "polite", "aria-label": say("technician"), hidden: true });
  const tellAll = (told) => {
    if (!told) return;
    shown.hidden = false;
    shown.textContent = JSON.stringify(told, null, 1);
  };
  async function selftest() {
    let told = await ask("selftest", { start: true });
    while (told && told.running) {
      tellAll(told);
      await new Promise((done) => setTimeout(done, 500));
      told = await ask("selftest");
    }
    tellAll(told);
  }
  return part(say("technician"), true, el("div", { class: "row" },
    button("test", say("test_on"), () => ask("test", { on: true }), { when: () => !view.test }),
    button("test", say("test_off"), () => ask("test", { on: false }), { when: () => view.test }),
    button("selftest", say("selftest"), selftest),
    button("sensors", say("sensors"), async () => tellAll(await ask("sensors")))), shown);
}

function virtual() {
  const press = (to) => button("", say(`virtual_${to}`), () => ask("lid", { to }));
  return part(say("virtual"), true, el("div", { class: "row" }, press("open"), press("shut")));
}

// -- the page -----------------------------------------------------------------------------------------------------

const place = at("console");
place.append(nextStep(), result());
if (page.has_lid && may("shake")) place.append(virtual());
if (may("bets")) place.append(wagers(), tileHands());
place.append(lastRounds());
if (may("void")) place.append(supervisor());
if (may("test")) place.append(technician());
at("logout").append(el("button", { type: "button", onclick: logOut }, say("log_out", { role: say("role_name") })));

async function logOut() {
  await fetch(`/dealer/logout?lang=${page.lang}`, {
    method: "POST", headers: { "content-type": "application/json", "x-csrf": page.csrf }, body: "{}",
  }).catch(() => null);
  location.reload();
}

function seen(now) {
  view = now;
  document.body.classList.remove("lost");
  document.body.dataset.state = view.state;
  showState(at("state"), view);
  showNotices(at("notices"), view);
  show(at("round"), view.round ? el("span", {}, say("round", { n: view.round })) : null,
    view.round && view.state !== "IDLE" ? el("span", { class: view.bets_open ? "chip open" : "chip" },
      `${view.bets_open ? "◎" : "■"} ${say(view.bets_open ? "bets_open" : "bets_closed")}`) : null);
  update();
}

async function lost() {
  document.body.classList.add("lost");
  view = { ...view, can: [] };
  showNotices(at("notices"), { notices: [] }, [{ kind: "lost", text: say("lost") }]);
  update();
  // The server may be there and the session over.
  const answer = await fetch(`/dealer/session?lang=${page.lang}`).catch(() => null);
  if (answer && answer.status === 401) location.reload();
}

watch(`/dealer/events?lang=${page.lang}`, seen, lost);
