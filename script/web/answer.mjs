// Answers a call that waits, as a person does in a real browser: node answer.mjs LINK WORDS LAST
// WORDS stand in the call, LAST is what the run says at its end. Prints a line for each
// thing that was seen.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [link, words, last] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(150000);
  await page.goto(link);
  await page.waitForURL((u) => !u.search);
  const base = page.url().replace(/\/$/, "");
  // The overview says that somebody waits, by itself.
  const matter = page.locator(".matters li", { hasText: "waits for your word" });
  await matter.waitFor().catch(async (err) => {
    for (const path of ["/runs", "/guard", "/events"]) {
      await page.goto(base + path);
      console.log(path + "\n" + (await page.textContent("main")).replace(/\s+/g, " ").slice(0, 1500));
    }
    throw err;
  });
  console.log("ok the overview says that a call waits");
  await matter.getByRole("link").click();
  const ask = page.locator("article.ask", { hasText: words });
  await ask.waitFor();
  assert.match(await ask.locator("h3").textContent(), /claude/);
  const run = await ask.locator("a.id").getAttribute("href");
  await ask.getByRole("button", { name: "Let it run" }).click();
  await page.waitForURL(/done=approved/);
  assert.equal(await page.locator("article.ask").count(), 0);
  console.log("ok the call was let through");
  await page.goto(new URL(run, base).href);
  await page.locator(`#stream >> text=${last}`).waitFor();
  await page.locator(".lead .tag.good", { hasText: "completed" }).waitFor();
  assert.ok((await page.locator("#stream").textContent()).includes(words), "the call is in the run's output");
  console.log("ok the run's end is shown");
} finally {
  await browser.close();
}
