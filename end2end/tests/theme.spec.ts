import { expect, test } from "../fixtures";

const background = () => getComputedStyle(document.body).backgroundColor;

test("the switch changes the theme at once and for the next visit", async ({ page, hydrated }) => {
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto("/login");
  await hydrated(page);
  const light = await page.evaluate(background);

  await page.getByRole("button", { name: "Theme: system" }).click();
  await page.getByRole("button", { name: "Theme: light" }).click();
  await expect(page.getByRole("button", { name: "Theme: dark" })).toBeVisible();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  const dark = await page.evaluate(background);
  expect(dark).not.toBe(light);

  await page.reload();
  await hydrated(page);
  expect(await page.evaluate(background)).toBe(dark);

  await page.getByRole("button", { name: "Theme: dark" }).click();
  await expect(page.locator("html")).not.toHaveAttribute("data-theme");
  expect(await page.evaluate(background)).toBe(light);
});

test("without a choice the system decides", async ({ page, hydrated }) => {
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto("/login");
  await hydrated(page);
  const light = await page.evaluate(background);
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await page.evaluate(background)).not.toBe(light);
});
