// Uses the dashboard as a person does, in a real browser: node check.mjs DIR
// DIR is what `seed` made. Prints a line for each thing that was looked at, and ends
// with 1 at the first that is not as it should be.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { join } from "node:path";
import { chromium } from "playwright-core";

const dir = process.argv[2];
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const env = { LANG: "C.UTF-8" };
for (const line of readFileSync(join(dir, "env"), "utf8").split("\n")) {
  for (const [, name, value] of line.matchAll(/([A-Z_]+)=(\S+)/g)) env[name] = value;
}
const shop = join(dir, "shop");
const children = [];

function start(...args) {
  const child = spawn(join(env.PATH.split(":")[0], "reprise"), args, { cwd: shop, env });
  child.out = "";
  child.err = "";
  child.stdout.on("data", (d) => (child.out += d));
  child.stderr.on("data", (d) => (child.err += d));
  child.ended = new Promise((done) => child.on("close", done));
  children.push(child);
  return child;
}

function reprise(...args) {
  const r = spawnSync(join(env.PATH.split(":")[0], "reprise"), args, { cwd: shop, env, encoding: "utf8" });
  assert.equal(r.status, 0, `reprise ${args.join(" ")}: ${r.stderr}`);
  return r.stdout;
}

async function until(what, fn, seconds = 60) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const got = await fn();
    if (got) return got;
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await new Promise((r) => setTimeout(r, 50));
  }
}

const say = (what) => console.log("ok " + what);
const web = start("web");
const link = (await until("the link", () => web.out.includes("\n") && web.out)).trim();
const base = link.split("/?")[0];
const origin = new URL(link).origin;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

// What a page may not do, whatever it shows.
const amiss = [];
function watch(page) {
  page.on("console", (m) => m.type() === "error" && amiss.push(`${page.url()}: ${m.text()}`));
  page.on("pageerror", (e) => amiss.push(`${page.url()}: ${e}`));
  page.on("dialog", (d) => amiss.push(`${page.url()}: a dialog: ${d.message()}`));
  page.on("request", (r) => r.url().startsWith(base + "/") || amiss.push(`a request to ${r.url()}`));
  return page;
}

// What is not laid out so that it can be read and hit: on the page itself, as wide as it is.
function untidy() {
  const seen = (e) => e.checkVisibility() && e.getClientRects().length > 0;
  const name = (e) => `${e.tagName.toLowerCase()} "${(e.getAttribute("aria-label") || e.textContent || e.name).trim().slice(0, 40)}"`;
  const bad = [];
  const hit = [...document.querySelectorAll("main :is(button, .button, select, textarea, input:not([type=hidden]))")].filter(seen);
  for (const [i, a] of hit.entries()) {
    const p = a.getBoundingClientRect();
    for (const b of hit.slice(i + 1)) {
      const q = b.getBoundingClientRect();
      if (p.left < q.right + 3 && q.left < p.right + 3 && p.top < q.bottom + 3 && q.top < p.bottom + 3) bad.push(`${name(a)} touches ${name(b)}`);
    }
  }
  for (const e of document.querySelectorAll("main *")) {
    const style = getComputedStyle(e);
    if (!seen(e) || e.closest("svg, .timeline, .quiet") || e.scrollWidth <= e.clientWidth + 1 || e.clientWidth === 0) continue;
    if (style.overflowX === "hidden" || style.overflowX === "clip") bad.push(`${name(e)} is cut off`);
    else if ((style.overflowX === "auto" || style.overflowX === "scroll") && e.tabIndex < 0) bad.push(`${name(e)} scrolls, and not by the keyboard`);
  }
  for (const e of document.querySelectorAll("main a .id")) { // set apart from the words before it
    if (e.previousSibling?.nodeType !== Node.TEXT_NODE) continue;
    const range = document.createRange();
    range.selectNodeContents(e.previousSibling);
    const before = [...range.getClientRects()].at(-1), at = e.getBoundingClientRect();
    if (before && at.left >= before.right - 1 && at.left - before.right < 1 && !/\s$/.test(e.previousSibling.data)) bad.push(`${name(e)} stands at the word before it`);
  }
  for (const e of document.querySelectorAll("main a.path, main a .path")) {
    const a = getComputedStyle(e.closest("a"));
    if (a.textDecorationLine.includes("underline") && parseFloat(getComputedStyle(e).textUnderlineOffset) < .28 * parseFloat(getComputedStyle(e).fontSize)) bad.push(`the line below ${name(e)} hides underscores`);
  }
  return bad;
}

// A page as it stands is without barriers, in light and in dark, and laid out well at both widths.
async function wellMade(page, what) {
  await page.evaluate(axe); // by the driver: the policy lets no script in but the server's own
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes[0].html}`), [], `${what}, ${colorScheme}`);
  }
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 860 });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${what} is wider than ${width}`);
    assert.deepEqual(await page.evaluate(untidy), [], `${what}, ${width} wide`);
  }
}

try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  const page = watch(await context.newPage());
  await page.goto(link);
  await page.waitForURL(base + "/");
  const [cookie] = await context.cookies(base + "/");
  assert.ok(cookie.httpOnly && cookie.sameSite === "Strict" && cookie.path === base.slice(origin.length) + "/", "the cookie");
  assert.ok(!(await page.evaluate(() => location.href + document.referrer)).includes("token="), "the token is in the address or the referrer");
  await page.goBack().catch(() => {});
  assert.ok(!page.url().includes("token="), "the token is in the history: " + page.url());
  await page.goto(base + "/");
  say("the link lets in, and its token stays nowhere");

  const failed = JSON.parse(reprise("runs", "list", "--json")).find((r) => r.status === "completed");
  const word = JSON.parse(reprise("runs", "list", "--json")).find((r) => r.origin === "cli"); // of a word without an end
  const event = JSON.parse(reprise("events", "tail", "--json", "-n", "1").trim().split("\n").pop());
  const known = JSON.parse(reprise("recall", "port of billing", "--json")).results[0];
  const entry = JSON.parse(reprise("log", "--all", "--json", "--type", "learning")).find((e) => e.branch === "agent-tidy");
  const policies = JSON.parse(reprise("policy", "history", "--json"));
  const pages = [
    "/", "/runs", "/runs?status=failed", "/runs/" + failed.id, "/runs/" + word.id, "/work", "/work/items/word", "/work/items/broken", "/tasks", "/tasks?view=list", "/tasks/1", "/tasks/4", "/tasks/4/files/0",
    "/memory", "/memory?q=port+of+billing", "/memory/block/global/reference-deploy.md", "/memory/edit/reference-deploy.md", "/memory/item/" + known.id,
    "/events", "/events?type=work", "/events/" + event.id, "/events/verify", "/guard",
    "/guard/rules", "/work/items?state=ready", "/state", "/state?agent=tidy", "/state/entries/" + entry.id, "/state/history?agent=tidy", "/policy", "/policy/" + policies[0].id,
    "/figures", "/figures?days=90&by=agent", "/nothing",
  ];
  const violations = [];
  for (const path of pages) {
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
    const answer = await page.goto(base + path);
    assert.equal(answer.status(), path === "/nothing" ? 404 : 200, path);
    assert.ok(!(await page.title()).includes("taken"), `${path}: a script of a text ran`);
    // The policy lets no script in but the server's own, so axe comes by the driver.
    await page.evaluate(axe);
    // Of its rules only that of contrast looks at colours, which are all that the dark changes.
    for (const [colorScheme, only] of [["light", {}], ["dark", { runOnly: ["color-contrast"] }]]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      const found = await page.evaluate((only) => axe.run(document, { resultTypes: ["violations"], ...only }), only);
      const bad = found.violations.map((v) => `${path} in ${colorScheme}: ${v.impact} ${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" | ")} ${v.nodes[0].failureSummary}`);
      violations.push(...bad);
    }
    for (const width of [390, 1000, 1280]) { // which it is afterwards
      await page.setViewportSize({ width, height: width > 400 ? 860 : 844 });
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${path} is wider than ${width}`);
      violations.push(...(await page.evaluate(untidy)).map((what) => `${path}, ${width} wide: ${what}`));
    }
  }
  assert.deepEqual(violations, []);
  say(`${pages.length} pages: axe finds nothing, in light and dark; none is wider than a phone, nothing is cut off, and no two things to press touch`);

  const plain = await browser.newContext({ javaScriptEnabled: false, storageState: await context.storageState() });
  const still = watch(await plain.newPage());
  for (const path of pages) {
    await still.goto(base + path);
    assert.ok((await still.textContent("h1")).trim(), path);
  }
  await still.goto(base + "/work");
  const row = still.locator("[data-item]", { hasText: "Tidy the old branches" });
  await row.locator("select").selectOption("9");
  await row.getByRole("button").click();
  assert.match(await still.textContent(".note"), /new priority/);
  assert.match(reprise("queue", "list"), /ready +9 +Tidy/);
  await plain.close();
  say("pages are read, and an item is moved, without JavaScript");

  // Keyboard only: to the content past the navigation, and an item moved.
  await page.goto(base + "/work");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  const select = page.getByLabel("Priority of Look at the slow test");
  for (let i = 0; i < 80 && !(await select.evaluate((e) => e === document.activeElement)); i++) {
    await page.keyboard.press("Tab");
    const seen = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(seen, "none", "where the keyboard is cannot be seen");
  }
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForURL(/done=moved/);
  assert.match(reprise("queue", "list"), /ready +4 +Look at the slow test/);
  say("an item is moved by the keyboard alone");

  await page.goto(base + "/work");
  await page.waitForFunction(() => document.querySelector("[data-item]")?.draggable);
  await page.locator("[data-item]", { hasText: "Write how to deploy" }).dragTo(page.locator('[data-priority="8"]'));
  await page.waitForURL(/done=moved/);
  assert.match(reprise("queue", "list"), /ready +8 +Write how to deploy/);
  say("an item is moved by dragging");

  // What agents know: the graph, a diff, something to keep, an agent's own made the project's.
  await page.goto(base + "/state");
  assert.ok((await page.locator(".graph circle").count()) >= 9, "the graph's entries");
  await page.getByRole("link", { name: "Changes of tidy" }).click();
  await page.locator("td a").first().click();
  assert.match(await page.textContent("pre.diff ins"), /^\+/);
  await page.goto(base + "/state");
  await page.getByLabel("What to do or to expect").fill("Ask <b>Ada</b> before a Friday");
  await page.locator("form", { hasText: "A learning" }).getByRole("button").click();
  await page.waitForURL(/done=learnt/);
  await page.locator(".timeline >> text=Ask <b>Ada</b> before a Friday").waitFor();
  assert.match(reprise("log", "--all"), /Ask <b>Ada<\/b> before a Friday/);
  await page.goto(base + "/state/entries/" + entry.id);
  await page.getByRole("button", { name: "Give it to the project" }).click();
  await page.waitForURL(/done=promoted/);
  await page.goto(base + "/state/entries/" + entry.id);
  assert.equal(await page.getByRole("button", { name: "Give it to the project" }).count(), 0);
  say("what agents know is shown as a graph, with its changes; a learning is kept, and an agent's promoted");

  // What an agent writes meanwhile shows by itself.
  await page.goto(base + "/state");
  const wrote = spawnSync(join(env.PATH.split(":")[0], "reprise"), ["log", "add", "A last look"], { cwd: shop, env: { ...env, REPRISE_AGENT: "tidy", REPRISE_AGENT_DIR: join(dir, "places/tidy/.reprise/agent") }, encoding: "utf8" });
  assert.equal(wrote.status, 0, wrote.stderr);
  await page.locator(".timeline >> text=A last look").waitFor();
  say("what an agent logs shows by itself");

  await page.goto(base + "/guard/rules");
  await page.getByLabel("make deploy-staging").check();
  await page.getByRole("button", { name: "Allow what is ticked" }).click();
  await page.waitForURL(/done=allowed/);
  assert.match(reprise("guard", "rules"), /make deploy-staging/);
  await page.goto(base + "/guard/rules");
  assert.equal(await page.getByLabel("make deploy-staging").count(), 0);
  say("a proposed rule is taken over");

  await page.goto(base + "/policy/" + policies.at(-1).id);
  assert.match(await page.textContent("main"), /60 past recalls/);
  await page.getByLabel("Why; it is kept in the log").fill("it was steadier");
  await page.getByRole("button", { name: "Put it in force again" }).click();
  await page.waitForURL(/done=rolled/);
  assert.equal(JSON.parse(reprise("policy", "history", "--json"))[0].reason, "it was steadier");
  say("an earlier policy is put in force again");

  await page.goto(base + "/figures");
  assert.equal(await page.locator("svg.chart").count(), 10);
  await page.getByText("Hook latency as a table").click();
  assert.match(await page.locator("details[open] table").textContent(), /ms \(n = /);
  say("figures are drawn, and stand in tables");

  // A run, as it goes.
  writeFileSync(join(dir, "slow.yaml"), `steps:
  - say: "the first **words** <script>document.title='taken in'</script>"
  - wait_for: {file: "${join(dir, "go")}", timeout: 60s}
  - say: "the last words"
`);
  const run = start("spawn", "--agent", "script", "--agent-script", join(dir, "slow.yaml"), "go slowly");
  await page.goto(base + "/");
  await page.locator("section", { hasText: "At work now" }).getByRole("link", { name: /run-/ }).first().click();
  await page.locator("#stream >> text=the first words").waitFor();
  assert.equal(await page.locator("#stream >> text=the last words").count(), 0);
  await page.evaluate(() => (window.same = true));
  writeFileSync(join(dir, "go"), "");
  await page.locator("#stream >> text=the last words").waitFor();
  await page.locator(".lead .tag.good").waitFor();
  assert.ok(await page.evaluate(() => window.same), "the page was loaded anew");
  await run.ended;
  say("a run's output and its end are shown as they come");

  // One that has ended is gone on with from its page, in its session, and the old one says by which.
  const ended = page.url();
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 860 });
    assert.deepEqual(await page.evaluate(untidy), [], `a run that can be gone on with, ${width} wide`);
  }
  await page.getByLabel("Go on in its session").fill("and now the rest");
  await page.getByRole("button", { name: "Go on", exact: true }).click();
  await page.waitForURL((url) => url.href !== ended && /\/runs\/run-[a-z2-7]+$/.test(url.pathname));
  const next = new URL(page.url()).pathname.split("/").pop();
  await page.locator("#stream >> text=the last words").waitFor();
  await page.locator(".lead .tag.good").waitFor();
  await page.goto(ended);
  await page.getByRole("link", { name: next }).first().waitFor();
  assert.equal(await page.getByLabel("Go on in its session").count(), 0, "a session would have two runs");
  say("a run that has ended is gone on with in its session");

  // One who stops.
  writeFileSync(join(dir, "stop.yaml"), `steps:\n  - wait_for: {file: "${join(dir, "never")}", timeout: 100s}\n`);
  const stopped = start("spawn", "--agent", "script", "--agent-script", join(dir, "stop.yaml"), "never ends");
  await page.goto(base + "/runs");
  await page.locator("tr", { hasText: "never ends" }).getByRole("link").first().click();
  await page.getByRole("button", { name: "Stop the run" }).click();
  await page.locator(".tag.bad", { hasText: "killed" }).waitFor();
  await stopped.ended;
  say("a run is stopped");

  // The loop asks, a person raises its ceiling and answers, it goes on.
  await page.goto(base + "/work");
  const loop = start("loop", "run", "--agent-script", join(dir, "steps.yaml"), "--until-empty", "--delay", "0s");
  await page.getByRole("heading", { name: "It waits for you" }).waitFor({ timeout: 60000 });
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 860 });
    assert.deepEqual(await page.evaluate(untidy), [], `a question, ${width} wide`);
  }
  // The overview leads to the field, with what is asked above it; the part goes on being drawn
  // anew, and the cursor stays.
  await page.goto(base + "/");
  await page.locator(".matters li", { hasText: "Change all of them" }).getByRole("link", { name: "Answer" }).click();
  await until("the cursor", () => page.evaluate(() => document.activeElement?.id === "reply-ask"));
  await until("what is asked, in sight", () => page.locator("#answer-ask blockquote").evaluate((e) => e.getBoundingClientRect().top >= 0));
  await page.locator("#answer-ask").evaluate((e) => (e.dataset.old = "yes"));
  reprise("queue", "add", "--id", "meanwhile", "--parked", "Came meanwhile");
  await page.getByText("Came meanwhile").first().waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.id), "reply-ask");
  assert.equal(await page.locator("#answer-ask").getAttribute("data-old"), null, "the part was not drawn anew");
  reprise("queue", "drop", "meanwhile");
  const box = page.locator("#answer-ask");
  assert.match(await box.textContent(), /Change all of them/);
  const items = page.locator(".gauges li", { hasText: "Attempts begun" });
  const most = await items.textContent();
  await page.getByText("Raise the ceilings", { exact: true }).click();
  await page.getByLabel("More attempts").fill("7");
  await page.getByRole("button", { name: "Raise", exact: true }).click();
  await page.waitForURL(/done=raised/);
  // Silence is no answer, and the question stays.
  await box.getByRole("button", { name: "Answer", exact: true }).click();
  assert.ok(await box.locator("textarea").evaluate((t) => t.validity.valueMissing));
  await box.locator("textarea").fill("Only the new one.");
  await box.getByRole("button", { name: "Answer", exact: true }).click();
  await page.waitForURL(/done=(?!raised)/);
  await loop.ended;
  await page.goto(base + "/work");
  assert.notEqual(await items.textContent(), most);
  assert.match(await items.textContent(), /of 507/);
  await page.locator(".panel .tag", { hasText: "finished" }).waitFor();
  assert.match(reprise("queue", "list", "--all"), /ask +done/);
  say("an interrupt is answered, and the loop goes on");

  // A loop that waits at a ceiling has its field open, and is not let go on without it; one that
  // finds nothing to do says so.
  reprise("queue", "add", "One for a small loop");
  reprise("queue", "add", "Another for it");
  const small = start("loop", "run", "--agent-script", join(dir, "steps.yaml"), "--delay", "0s", "--max-tokens", "10");
  await page.goto(base + "/work");
  const raise = page.getByRole("button", { name: "Raise it, and go on" });
  await raise.waitFor({ timeout: 60000 });
  await wellMade(page, "a ceiling");
  await raise.click();
  const needed = page.locator("#answer-tokens");
  assert.ok(await needed.evaluate((e) => e.validity.valueMissing && e === document.activeElement));
  await needed.fill("100000");
  await raise.click();
  await page.waitForURL(/done=raised/);
  await page.locator("text=Nothing is ready: ").waitFor();
  await page.locator(".panel .tag", { hasText: "idle" }).waitFor();
  reprise("loop", "stop");
  await small.ended;
  say("a ceiling is raised where the loop waits at it, and a loop without work says so");

  // What is refused comes back filled in, and is sent from there.
  await page.goto(base + "/memory");
  await page.getByText("Make a block").click();
  await page.getByLabel("For", { exact: true }).selectOption("project");
  await page.getByLabel("Name").fill("no name for a block");
  await page.getByLabel("Line in the index").fill('Its "line"');
  await page.getByLabel("Text").fill("# One\n\nof the project");
  await page.getByRole("button", { name: "Make it" }).click();
  const once = page.locator("#again-name");
  await once.waitFor();
  await wellMade(page, "a refused form");
  await once.fill("reference-one");
  await page.getByRole("button", { name: "Send it again" }).click();
  await page.waitForURL(/memory\/block\/project\/reference-one\.md\?done=created/);
  const madeHere = reprise("memory", "read", "reference-one", "--scope", "project");
  assert.ok(madeHere.includes("# One\n\nof the project"), madeHere);
  say("a refused form comes back filled in; a block is made for the project alone");

  // Somebody else writes while one edits.
  const block = join(env.REPRISE_HOME, "memory", "blocks", "reference-deploy.md");
  await page.goto(base + "/memory/edit/reference-deploy.md");
  const text = page.locator("#text");
  await text.fill((await text.inputValue()).replace("6543", "7000") + "Mine.\n");
  writeFileSync(block, readFileSync(block, "utf8") + "\nTheirs.\n");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator("text=nothing is lost").waitFor();
  assert.match(readFileSync(block, "utf8"), /Theirs\.\n$/);
  assert.match(await text.inputValue(), /7000[\s\S]*Mine\./);
  await text.fill((await text.inputValue()) + "Theirs.\n");
  await page.getByRole("button", { name: "Save over it" }).click();
  await page.waitForURL(/done=saved/);
  assert.match(readFileSync(block, "utf8"), /7000[\s\S]*Mine\.\nTheirs\./);
  // What is changed by hand shows by itself.
  writeFileSync(block, readFileSync(block, "utf8").replace("Mine.", "Changed by hand."));
  await page.locator("text=Changed by hand.").waitFor();
  say("a conflict is shown and merged; a change by hand shows by itself");

  await page.goto(base + "/memory?q=port+of+billing");
  await page.getByRole("link", { name: /The port of billing is 6543/ }).click();
  await page.getByLabel("What holds instead").fill("The port of billing is 7654");
  await page.getByRole("button", { name: "Correct it" }).click();
  await page.waitForURL(/done=corrected/);
  assert.match(reprise("recall", "port of billing"), /7654/);
  say("what is remembered is corrected");

  await page.getByText("Forget it").first().click();
  await wellMade(page, "what goes with it");
  await page.getByRole("button", { name: "Forget it" }).click();
  await page.waitForURL(/memory\/item\/[^/]+\?done=forgotten/);
  await wellMade(page, "what was forgotten");
  await page.locator(".lead .tag", { hasText: "forgotten" }).waitFor();
  await page.getByRole("button", { name: "Bring it back" }).click();
  await page.waitForURL(/done=brought-back/);
  assert.match(reprise("recall", "port of billing"), /7654/);
  say("what is forgotten is brought back from the page that comes then");

  // Another page of this browser, on another port of this machine.
  const before = reprise("queue", "list", "--all", "--json");
  let asked = "";
  const evil = createServer((req, res) => {
    asked += JSON.stringify(req.headers);
    res.setHeader("content-type", "text/html");
    res.end(`<form method="post" action="${base}/work/items/broken/retry"><input name="csrf" value="x"></form>
      <script>fetch("${base}/work", { credentials: "include" }).then((r) => r.text()).then((t) => (document.title = "read " + t.length), () => document.forms[0].submit());</script>`);
  }).listen(0, "127.0.0.1");
  await until("the other server", () => evil.listening);
  const strange = await context.newPage();
  const answered = strange.waitForResponse((r) => r.url().endsWith("/retry"));
  await strange.goto(`http://127.0.0.1:${evil.address().port}/`);
  assert.equal((await answered).status(), 403);
  assert.ok(!asked.includes(cookie.value), "another port was sent the cookie");
  assert.equal(reprise("queue", "list", "--all", "--json"), before);
  await strange.close();
  evil.close();
  const out = await browser.newContext();
  for (const path of ["/", "/static/style.css", "/static/app.js", "/live", "/runs"]) {
    assert.equal((await out.request.get(base + path)).status(), 403, path);
  }
  assert.equal((await out.request.get(link)).status(), 403, "the link a second time");
  say("other pages change and read nothing, and nothing is there without the cookie");

  // A dashboard that cannot be reached, or has ended, while somebody writes: at every width the
  // page says since when and what to do, nothing is sent into nowhere, and nothing is lost.
  const second = start("web");
  const away = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  const left = await away.newPage(); // not watched: that nobody answers is an error of the browser's
  left.on("pageerror", (e) => amiss.push(`${left.url()}: ${e}`));
  await left.goto((await until("the second link", () => second.out.includes("\n") && second.out)).trim());
  await left.waitForURL((u) => !u.search);
  const there = left.url().replace(/\/$/, "");
  await left.goto(there + "/work");
  await left.locator("#live-state", { hasText: "Live" }).waitFor();
  const band = left.locator("#gone");
  assert.ok(await band.isHidden(), "the page says that the dashboard is away, and it is not");
  const title = left.getByLabel("Title", { exact: true });
  await title.fill("Written meanwhile");
  await away.setOffline(true);
  await left.getByRole("button", { name: "Add", exact: true }).click();
  await band.locator(".held").waitFor();
  assert.equal(left.url(), there + "/work");
  await away.setOffline(false);
  await band.waitFor({ state: "hidden" });
  assert.equal(await title.inputValue(), "Written meanwhile");
  await left.getByRole("button", { name: "Add", exact: true }).click();
  await left.waitForURL(/done=added/);
  assert.equal(reprise("queue", "list").match(/Written meanwhile/g)?.length, 1, "it was not sent once");
  say("what could not be sent is held, and sent once the dashboard answers again");

  await title.fill("Not lost");
  const edit = await away.newPage(); // where nothing is drawn anew
  edit.on("pageerror", (e) => amiss.push(`${edit.url()}: ${e}`));
  await edit.goto(there + "/memory/edit/reference-deploy.md");
  await edit.locator("#text").fill("All of it anew");
  await left.bringToFront();
  second.kill("SIGINT");
  await second.ended;
  for (const [one, field, want, press] of [[left, "#title", "Not lost", "Add"], [edit, "#text", "All of it anew", "Save"]]) {
    await one.bringToFront();
    await one.locator("#gone").waitFor();
    assert.match(await one.locator("#gone").textContent(), /not answered since \d\d:\d\d:\d\d[^]*reprise web/);
    const url = one.url();
    for (const width of [390, 1280]) {
      await one.setViewportSize({ width, height: 860 });
      await one.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
      const place = await one.locator("#gone").boundingBox();
      assert.ok(place.y >= 0 && place.y + place.height <= 860, `the band is out of sight at ${width}`);
    }
    await wellMade(one, "the band");
    await one.getByRole("button", { name: press, exact: true }).click();
    await one.locator("#gone .held").waitFor();
    await one.getByRole("link", { name: "Runs", exact: true }).click();
    await until("the focus", () => one.evaluate(() => document.activeElement.id === "gone"));
    assert.equal(one.url(), url);
    assert.equal(await one.locator(field).inputValue(), want);
  }
  await away.close();
  say("of a dashboard that has ended the page says since when and what to do, and keeps what was written");

  assert.deepEqual(amiss.filter((a) => !a.includes("404") && !a.includes("favicon") && !/40[09] \((Conflict|Bad Request)\)/.test(a)), []);
  say("no page asked elsewhere, and none had an error");
} finally {
  await browser.close();
  for (const c of children) if (c.exitCode === null) c.kill("SIGINT");
  await Promise.all(children.map((c) => c.ended));
}
assert.equal(web.exitCode, 0, web.err);
