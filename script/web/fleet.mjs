// Uses the dashboard's page of a fleet as a person does: node fleet.mjs LINK GO QUESTION
// A worker elsewhere works at two items: one asks QUESTION, the other says "first words" and
// then waits for the file GO. Prints a line for each thing that was looked at, and ends with
// 1 at the first that is not as it should be.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [link, go, question, pictures] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const base = link.split("/?")[0];
const say = (what) => console.log("ok " + what);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const amiss = [];

async function look(page, name) {
  const violations = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.goto(page.url());
    const found = await page.evaluate(axe + "; axe.run(document, { resultTypes: ['violations'] })");
    violations.push(...found.violations.map((v) => `${name} in ${colorScheme}: ${v.impact} ${v.id}: ${v.nodes[0].html} ${v.nodes[0].failureSummary}`));
    if (pictures) await page.screenshot({ path: `${pictures}/${name}-${colorScheme}.png`, fullPage: true });
  }
  await page.setViewportSize({ width: 390, height: 844 });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${name} is wider than a phone`);
  if (pictures) await page.screenshot({ path: `${pictures}/${name}-phone.png`, fullPage: true });
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  assert.deepEqual(violations, []);
}

try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  const page = await context.newPage();
  page.setDefaultTimeout(120000);
  page.on("console", (m) => m.type() === "error" && amiss.push(`${page.url()}: ${m.text()}`));
  page.on("pageerror", (e) => amiss.push(`${page.url()}: ${e}`));
  page.on("dialog", (d) => amiss.push(`${page.url()}: a dialog: ${d.message()}`));
  page.on("request", (r) => r.url().startsWith(base + "/") || amiss.push(`a request to ${r.url()}`));
  await page.goto(link);
  await page.waitForURL(base + "/");

  // Nothing is loaded anew by hand: what the worker says shows by itself.
  await page.getByRole("navigation").getByRole("link", { name: "Fleet", exact: true }).click();
  await page.getByText(question).first().waitFor();
  const going = page.getByRole("region", { name: "Runs that go on" });
  await going.getByRole("link", { name: /Wait here/ }).waitFor();
  await look(page, "fleet");
  await page.goto(base + "/");
  await page.getByText("waits for your answer about").waitFor();
  say("what a worker does and asks shows by itself; axe finds nothing, in light and dark; it is no wider than a phone");

  const plain = await browser.newContext({ javaScriptEnabled: false, storageState: await context.storageState() });
  const still = await plain.newPage();
  await still.goto(base + "/fleet");
  assert.match(await still.textContent("main"), new RegExp(question.replace(/[?]/g, "\\?")));
  await plain.close();
  say("it is read without JavaScript");

  await page.goto(base + "/fleet");
  await going.getByRole("link", { name: /Wait here/ }).click();
  await page.locator("#stream >> text=first words").waitFor();
  assert.equal(await page.locator("#stream >> text=last words").count(), 0);
  await look(page, "fleetrun");
  await page.evaluate(() => (window.same = true));
  writeFileSync(go, "");
  await page.locator("#stream >> text=last words").waitFor();
  await page.locator(".lead .tag.good").waitFor();
  assert.ok(await page.evaluate(() => window.same), "the page was loaded anew");
  say("what a run on another machine says, and its end, are shown as they come");

  await page.goto(base + "/fleet");
  await page.getByLabel(/Your answer about/).fill("red please");
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.waitForURL(/done=asked/);
  await page.getByRole("region", { name: "Runs that have ended" }).getByRole("link", { name: /Ask the colour/ }).first().waitFor();
  await page.locator("#waits").waitFor({ state: "detached" });
  say("what a worker asks is answered, and it goes on");

  await page.getByRole("button", { name: /End after what runs/ }).click();
  await page.waitForURL(/done=stopping/);
  say("a worker's loop is asked to end");
  assert.deepEqual(amiss.filter((a) => !a.includes("favicon")), []);
  say("no page asked elsewhere, and none had an error");
} finally {
  await browser.close();
}
