import { expect, test } from "../fixtures";
import { startServer } from "../fixtures/server";

for (const javaScriptEnabled of [true, false]) {
  test.describe(javaScriptEnabled ? "with script" : "without script", () => {
    test.use({ javaScriptEnabled });

    test("the link that the server printed makes the first admin, once", async ({ browser, consoleGuard }) => {
      consoleGuard.allow(/403 \(Forbidden\)/);
      const server = await startServer();
      const context = await browser.newContext({ javaScriptEnabled });
      try {
        const page = await context.newPage();
        const link = server.output().match(/http:\S+\/setup\?token=[A-Za-z0-9]+/)?.[0] ?? "no link";
        await page.goto(link);
        await page.getByLabel("Email").fill("root@example.com");
        await page.getByLabel("Password").fill("too short");
        await page.getByRole("button", { name: "Make the account" }).click();
        await expect(page.getByRole("alert")).toContainText("12 to 1,024 characters");
        await page.getByLabel("Email").fill("root@example.com");
        await page.getByLabel("Password").fill("long enough for this");
        await page.getByRole("button", { name: "Make the account" }).click();
        await expect(page).toHaveURL(`${server.url}/settings/workspaces`);
        await expect(page.getByRole("heading", { name: "There are no workspaces yet" })).toBeVisible();

        const again = await page.goto(link);
        expect(again?.status()).toBe(403);
        await expect(page.getByRole("heading", { name: "Not allowed" })).toBeVisible();
      } finally {
        await context.close();
        await server.stop();
      }
    });
  });
}
