import type { Locator, Page } from 'playwright-core'
import * as assert from 'uvu/assert'

/** What somebody does in a view, apart from how it is done. */
export type Step =
  | readonly ['follow' | 'open' | 'press' | 'confirm' | 'check' | 'see' | 'gone', name: string]
  | readonly ['fill' | 'choose', label: string, value: string]

export type Name = 'mouse' | 'keyboard'

export interface Hand {
  readonly name: Name
  begin(view: string): Promise<void>
  press(target: Locator): Promise<void>
  fill(field: Locator, value: string): Promise<void>
  choose(field: Locator, value: string): Promise<void>
  check(field: Locator): Promise<void>
}

/** Ways to use a page. @param page the page now: tests may open another one */
export function handsOn(page: () => Page) {
  const content = () => page().locator('main, aside')

  const mouse: Hand = {
    name: 'mouse',
    begin: async () => {},
    press: target => target.click(),
    fill: (field, value) => field.fill(value),
    choose: async (field, value) => void (await field.selectOption({ label: value })),
    check: field => field.check(),
  }

  /** Moves the focus to an element with Tab, or back to it with Shift+Tab. */
  async function reach(target: Locator): Promise<void> {
    await target.waitFor()
    const isBehind = await target.evaluate(
      node => (node.compareDocumentPosition(node.ownerDocument.activeElement) & 4) !== 0,
    )
    for (let steps = 0; steps < 90; steps++) {
      if (await target.evaluate(node => node.matches(':focus'))) return
      await page().keyboard.press(isBehind ? 'Shift+Tab' : 'Tab')
    }
    assert.unreachable(`${target} is not reached with Tab`)
  }

  const keyboard: Hand = {
    name: 'keyboard',
    begin: async view => {
      // As on a page that was just loaded: its first link skips the navigation, and one more the list before the details.
      await page().locator('.skip').first().focus()
      await page().keyboard.press('Enter')
      const details = page().locator('main .skip')
      // Details that are shown later would take the focus.
      if (view.split('/').length > 2) await details.waitFor({ state: 'attached', timeout: 8000 }).catch(() => undefined)
      if ((await details.count()) === 0) return
      await reach(details)
      await page().keyboard.press('Enter')
    },
    press: async target => {
      await reach(target)
      await page().keyboard.press('Enter')
    },
    fill: async (field, value) => {
      await reach(field)
      await page().keyboard.press('Control+a')
      await page().keyboard.insertText(value)
    },
    choose: async (field, value) => {
      await reach(field)
      await page().keyboard.type(value)
    },
    check: async field => {
      await reach(field)
      await page().keyboard.press('Space')
    },
  }

  async function act(hand: Hand, [what, name, value = '']: Step): Promise<void> {
    const [link, button] = (['link', 'button'] as const).map(role => content().getByRole(role, { name, exact: true }))
    const field = content()
      .getByLabel(name, { exact: what !== 'check' })
      .last()
    if (what === 'follow') await hand.press(link!.first())
    else if (what === 'open') await hand.press(content().locator('summary').filter({ hasText: name }).last())
    else if (what === 'confirm')
      await hand.press(content().getByRole('group').getByRole('button', { name, exact: true }))
    else if (what === 'press') await hand.press(button!.last())
    else if (what === 'fill') await hand.fill(field, value)
    else if (what === 'choose') await hand.choose(field, value)
    else if (what === 'check') await hand.check(field)
    else if (what === 'see') await content().getByText(name).last().waitFor()
    else await content().getByText(name, { exact: true }).first().waitFor({ state: 'detached' })
  }

  return { mouse, keyboard, reach, act, content }
}
