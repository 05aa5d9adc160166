// Answers what an agent asks of a person, in a real browser: node answer.mjs LINK CALL QUESTION ANSWER
// First a call that waits is let run, whose input has CALL in it; then the loop's question
// that has QUESTION in it is answered by ANSWER; then the loop is seen to end. It prints
// "open" once the page is there, and a line for each thing that was seen.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [link, call, question, answer] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(180000);
  await page.goto(link);
  await page.waitForURL((u) => !u.search);
  const base = page.url().replace(/\/$/, "");
  await page.goto(base + "/guard");
  await page.locator("#live-state", { hasText: "Live" }).waitFor();
  console.log("open");
  // A call waits for less than a minute, as its client does; then the agent makes it once
  // more. So the page may tell the first time that it waits no more.
  for (let more = 5; ; more--) {
    const ask = page.locator("article.ask", { hasText: call }).first();
    await ask.waitFor();
    assert.match(await ask.locator("h3").textContent(), /claude/);
    await ask.getByRole("button", { name: "Let it run" }).click();
    await page.waitForLoadState();
    if (page.url().includes("done=approved")) break;
    assert.ok(more > 0, "no call could be let run: " + (await page.textContent("main")));
    await page.goto(base + "/guard");
  }
  console.log("ok a call that waits is let run");
  // The overview says by itself that the loop waits, and leads to the question.
  await page.goto(base + "/");
  const matter = page.locator(".matters li", { hasText: question });
  await matter.waitFor();
  console.log("ok the overview shows the question");
  await matter.getByRole("link", { name: "Answer" }).click();
  const box = page.locator("[id^=answer-]", { hasText: question });
  await box.locator("textarea").fill(answer);
  await box.getByRole("button", { name: "Answer", exact: true }).click();
  await page.waitForURL(/done=answered/);
  console.log("ok the question is answered");
  await page.locator(".panel .tag", { hasText: "finished" }).waitFor();
  console.log("ok the loop is seen to end");
} finally {
  await browser.close();
}
