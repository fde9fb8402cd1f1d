import { expect, people, test } from "../fixtures/demo";

const PATH = "/settings/audit";

/** Two pages of entries. */
const MANY = Array.from({ length: 30 }, (_, n) => `[[workspace]]\nid = "logged-${n}"\nname = "Logged ${n}"\n`).join("\n");

test.beforeAll(async ({ server }) => server.apply(MANY));

for (const javaScriptEnabled of [true, false]) {
  test.describe(javaScriptEnabled ? "with script" : "without script", () => {
    test.use({ javaScriptEnabled });

    test("filters, and turns pages", async ({ page, signIn, hydrated }) => {
      await signIn(page, people.admin, PATH);
      if (javaScriptEnabled) await hydrated(page);
      const times = page.getByRole("rowheader");
      await expect(times).toHaveCount(25);
      await page.getByLabel("Actor").fill("apply");
      await page.getByRole("button", { name: "Filter" }).click();
      await expect(page).toHaveURL(/actor=apply/);
      await page.getByRole("link", { name: "Next" }).click();
      await expect(page).toHaveURL(/actor=apply.*before=/);
      await expect(page.getByLabel("Actor")).toHaveValue("apply");
      await expect(times).not.toHaveCount(25);
      await page.getByRole("link", { name: "Previous" }).click();
      await expect(page).toHaveURL(/actor=apply.*after=/);
      await expect(times).toHaveCount(25);
      await page.getByRole("link", { name: "Clear" }).click();
      await page.getByLabel("Workspace", { exact: true }).fill("logged-3");
      await page.getByRole("button", { name: "Filter" }).click();
      await expect(times).toHaveCount(1);
      await expect(page.getByText("No entry fits.")).toBeHidden();
      await page.getByLabel("Workspace", { exact: true }).fill("nowhere");
      await page.getByRole("button", { name: "Filter" }).click();
      await expect(page.getByText("No entry fits.")).toBeVisible();
    });
  });
}

test("a new entry shows without reload", async ({ page, context, signIn, hydrated }) => {
  await signIn(page, people.admin, `${PATH}?workspace=logged-1`);
  await hydrated(page);
  await expect(page.getByRole("rowheader")).toHaveCount(1);
  await context.request.put("/api/admin/workspaces/logged-1/limits", { data: { daily_token_budget: 1234567 } });
  await expect(page.getByRole("row").nth(1)).toContainText("inherit changed to → 1,234,567");
});

test("what is no day is told", async ({ page, signIn, consoleGuard }) => {
  consoleGuard.allow(/status of 422/);
  await signIn(page, people.admin);
  const answer = await page.goto(`${PATH}?from=yesterday`);
  expect(answer?.status()).toBe(422);
  await expect(page.getByRole("alert")).toHaveText("From has to be a day, YYYY-MM-DD.");
});

test("is for platform admins alone", async ({ page, signIn, consoleGuard }) => {
  consoleGuard.allow(/status of 403/);
  await signIn(page, people.sourceAdmin);
  expect((await page.goto(PATH))?.status()).toBe(403);
});
