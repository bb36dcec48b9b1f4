// proof, timeout: 600s: a hundred agents, 20,000 events, and a browser whose frames are counted
import { cpSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BrowserContext, Page } from 'playwright-core'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { until } from '../../../e2e/installed.js'
import { openScene, type Scene } from './scene.js'

const SESSIONS = Number(process.env.SESSIONS ?? 100)
const EVENTS = Number(process.env.EVENTS ?? 20_000)
const EXTENSION = fileURLToPath(new URL('../../../../examples/extensions/acme.shelf', import.meta.url))

let scene: Scene
let context: BrowserContext
let page: Page

test.before(async () => {
  scene = await openScene({
    limits: { max_concurrent_agents: SESSIONS + 20 },
    session: { busy_input: { queue_cap: 200 } },
  })
  context = await scene.context()
  page = await scene.page(context)
})
test.after(() => scene?.close())

const see = (name: string) => page.goto(`${scene.base}/console/#/${name}`)
const prompt = (id: string, text: string) =>
  scene.api('POST', `/api/workspaces/${scene.workspace}/sessions/${id}/prompt`, { text })
const draft = (title: string) => scene.api('POST', '/api/tasks', { title, scope: 'global', draft: true })

test(`${EVENTS} events scroll, and what is seen stays in its place when older ones load`, async () => {
  const id = await scene.session({ name: 'Long' })
  const each = 100
  for (let n = 0; n < EVENTS / (each * 2); n++) await prompt(id, `say turn ${n}\ntools ${each}\nsay end of turn ${n}`)
  const last = EVENTS / (each * 2) - 1
  await see(`sessions/${id}`)
  await page.getByText(`end of turn ${last}`, { exact: true }).waitFor({ timeout: 240_000 })
  await page.reload()
  await page.getByText(`end of turn ${last}`, { exact: true }).waitFor()
  const list = page.getByRole('region', { name: 'Transcript' })
  // The first message in the window and where it is, before and after older ones arrive.
  const seen = () =>
    list.evaluate(node => {
      const { top } = node.getBoundingClientRect()
      const found = [...node.querySelectorAll('.message')].find(one => one.getBoundingClientRect().bottom > top + 4)
      const words = found?.textContent?.match(/turn (\d+)/)?.[1]
      return { words, offset: Math.round((found?.getBoundingClientRect().top ?? 0) - top), height: node.scrollHeight }
    })
  // Each page of older messages is held until the place before it arrives is known.
  let release: (() => void) | undefined
  await page.route(/transcript\?.*before_sequence/, async route => {
    await new Promise<void>(resolve => {
      release = resolve
    })
    await route.continue()
  })
  const frames = () => page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))')
  let loads = 0
  await list.hover()
  for (let n = 0; n < 400 && loads < 3; n++) {
    await page.mouse.wheel(0, -1200)
    await frames()
    if (!release) continue
    await frames()
    const before = await seen()
    release()
    release = undefined
    loads++
    await until(
      async () => ((await seen()).height > before.height ? true : undefined),
      10_000,
      () => 'older messages',
    )
    const after = await seen()
    assert.is(after.words, before.words, 'the same message is at the top')
    assert.ok(Math.abs(after.offset - before.offset) < 40, `${before.offset} became ${after.offset}`)
  }
  await page.unroute(/transcript\?.*before_sequence/)
  assert.ok(loads > 0, 'older messages were loaded')
  assert.ok((await page.locator('.message').count()) < 60, 'only messages near the window are in the page')
})

/** Frames that a page draws in a time. */
const frames = async (one: Page, ms: number): Promise<number> => {
  await one.bringToFront()
  return one.evaluate<number>(`new Promise(done => {
    let count = 0
    const end = performance.now() + ${ms}
    const next = () => { count++; performance.now() < end ? requestAnimationFrame(next) : done(count) }
    requestAnimationFrame(next)
  })`)
}

test(`${SESSIONS} sessions that stream at once leave the page most frames of a bare one`, async () => {
  const ids: string[] = []
  for (let n = 0; n < SESSIONS; n++) ids.push(await scene.session({ name: `Stream ${n}` }))
  const lines = Array.from({ length: 400 }, (_, n) => `say line ${n} of a text that streams\nsleep 150`)
  await Promise.all(ids.map(id => prompt(id, lines.join('\n'))))
  await see(`sessions/${ids[0]}`)
  await page.getByText(/line 3 of a text/).waitFor()
  const bare = await context.newPage()
  await bare.goto('about:blank')
  const counts = { bare: 0, console: 0 }
  for (let round = 0; round < 4; round++) {
    counts.bare += await frames(bare, 2000)
    counts.console += await frames(page, 2000)
  }
  await bare.close()
  console.log(`frames: console ${counts.console}, bare page ${counts.bare}`)
  for (const id of ids)
    await scene.api('POST', `/api/workspaces/${scene.workspace}/sessions/${id}/stop`).catch(() => {})
  assert.ok(counts.console >= 0.8 * counts.bare, `${counts.console} of ${counts.bare} frames`)
})

test('a tab that was hidden for ten minutes shows what it missed', async () => {
  const fresh = await scene.context()
  const hidden = await fresh.newPage()
  await hidden.clock.install()
  await hidden.goto(await scene.link())
  await hidden.getByRole('navigation', { name: 'Views' }).waitFor()
  await hidden.goto(`${scene.base}/console/#/work`)
  await hidden.getByText('Connected').waitFor()
  const browser = await fresh.newCDPSession(hidden)
  await browser.send('Page.setWebLifecycleState', { state: 'frozen' })
  for (let n = 0; n < 20; n++) await draft(`Made while hidden ${n}`)
  await browser.send('Page.setWebLifecycleState', { state: 'active' })
  await hidden.clock.fastForward('10:00')
  await hidden.getByText('Made while hidden 19').waitFor()
  await hidden.getByText('Connected').waitFor()
  assert.is(await hidden.getByText('Connection lost').count(), 0)
  await fresh.close()
})

test('a reload of a plugin is not noticed: what happens after it is shown', async () => {
  const folder = path.join(scene.at.folder, 'acme.shelf')
  cpSync(EXTENSION, folder, { recursive: true })
  await see('work')
  await page.getByText('Connected').waitFor()
  await scene.at.svc('extension', 'install', folder, '--allow-unverified')
  await scene.at.svc('extension', 'reload', 'acme.shelf')
  await draft('Made after the reload')
  await page.getByText('Made after the reload').waitFor()
  assert.is(await page.getByText('Connected').count(), 1)
})

test.run()
