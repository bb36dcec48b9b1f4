// proof, timeout: 240s: a daemon and a browser, and the library of the browser replaces functions of Node
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BrowserContext, Locator, Page } from 'playwright-core'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import { type Counterparts, hostileAdapter, openCounterparts, SECRET, waitingCall } from './counterparts.js'
import { handsOn } from './hands.js'
import { jobsOf } from './manage-jobs.js'
import { payloads } from './payloads.js'
import { openScene, type Scene } from './scene.js'

const KIT = fileURLToPath(new URL('../../../../examples/extensions/release-kit', import.meta.url))

let scene: Scene
let others: Counterparts
let context: BrowserContext
let page: Page
/** A tool that reads and needs no input. */
let tool: string

interface Tool {
  readonly descriptor: {
    readonly tool_id: string
    readonly risk: string
    readonly input_schema: { required?: string[] }
  }
  readonly decision: { readonly callable: boolean; readonly approval_required: boolean }
}

test.before(async () => {
  scene = await openScene()
  // Without this, a failure here would leave a daemon and a browser, which the process waits for.
  await begin().catch(async error => {
    await scene.close()
    throw error
  })
})

async function begin(): Promise<void> {
  context = await scene.context()
  context.setDefaultTimeout(10_000)
  page = await scene.page(context)
  const { tools } = await scene.api<{ tools: Tool[] }>('GET', '/api/tools?source=all')
  const simple = tools.find(
    ({ descriptor: { risk, input_schema: schema }, decision }) =>
      risk === 'read' && decision.callable && !decision.approval_required && !schema.required?.length,
  )
  tool = simple?.descriptor.tool_id ?? ''
  others = await openCounterparts(scene)
}
test.after(async () => {
  await others?.close()
  await scene?.close()
})

const see = async (view: string) => {
  await page.goto(`${scene.base}/console/#/${view}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.locator('.loading').first().waitFor({ state: 'detached' })
}

interface Rect {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const { mouse, keyboard, reach, act, content } = handsOn(() => page)
const jobs = jobsOf({
  scene: () => scene,
  others: () => others,
  tool: () => tool,
})

test('an extension is installed by mouse after its preview, and disabled by keyboard', async () => {
  await see('manage/extensions')
  for (const step of [
    ['follow', 'Install'],
    ['fill', 'Folder or archive', KIT],
    ['check', 'Also from an unverified source'],
    ['press', 'Show what it brings'],
    ['see', 'A planner that prepares releases'],
    ['press', 'Install it'],
    ['press', 'Reload'],
  ] as const)
    await act(mouse, step)
  await keyboard.begin('manage/extensions')
  for (const name of ['Disable', 'Enable']) await act(keyboard, ['press', name])
  await act(keyboard, ['see', 'Disable'])
  const all = () => scene.api<{ extensions: { name: string; enabled: boolean }[] }>('GET', '/api/extensions')
  const isEnabled = async () => (await all()).extensions.find(({ name }) => name === 'release-kit')?.enabled
  assert.ok(await eventually(isEnabled, 'an enabled extension'))
})

for (const [title, view, steps] of jobs)
  for (const hand of [mouse, keyboard])
    test(`${title}, by ${hand.name}`, async () => {
      mkdirSync(path.join(scene.at.folder, hand.name), { recursive: true })
      await see(view(hand.name))
      await hand.begin(view(hand.name))
      for (const step of steps(hand.name)) await act(hand, step)
      assert.is(
        await page
          .locator('input[type=password]')
          .evaluateAll(all => all.filter(one => (one as { value?: string }).value).length),
        0,
      )
    })

test('messages of bridges arrive signed, decisions are remembered, and no secret is in the page', async () => {
  for (const { name } of [mouse, keyboard]) {
    const sent = others.deliveries.find(({ text }) => text === `Hello by ${name}`)
    assert.ok(sent?.isSigned, `the message by ${name}`)
  }
  const { grants } = await scene.api<{ grants: { input_digest?: string }[] }>(
    'GET',
    `/api/tool-approval-grants?workspace_id=${scene.workspace}`,
  )
  assert.is(grants.filter(grant => grant.input_digest).length, 2)
  const { bridges } = await scene.api<{ bridges: { id: string }[] }>('GET', '/api/bridges')
  for (const view of [...bridges.map(({ id }) => `manage/bridges/${id}`), 'manage/vault', 'automation/triggers']) {
    await see(view)
    assert.not.ok((await page.content()).includes(SECRET), view)
  }
})

for (const hand of [mouse, keyboard])
  test(`a floating window is placed and resized freely, and another browser shows it, by ${hand.name}`, async () => {
    const windows = `/api/workspaces/${scene.workspace}/window-manager`
    const state = () =>
      scene.api<{ revision: number; windows: Record<string, { floating_rect: Rect }> }>('GET', windows)
    const command = async (command_id: string, payload: object) =>
      scene.api('POST', `${windows}/commands`, {
        ...{ command_id, payload },
        expected_revision: (await state()).revision,
      })
    const id = `win_${hand.name}`
    const start = { x: 0.1, y: 0.1, width: 0.3, height: 0.3 }
    await command('window.open', { id, app: 'work', floating_rect: start })
    await see('desktops')
    const other = await scene.context()
    const second = await scene.page(other, 'desktops')
    const title = page.getByRole('button', { name: 'Move Tasks' })
    const corner = page.getByRole('button', { name: 'Resize Tasks with the arrow keys' })
    const drag = async (from: Locator, right: number, down: number) => {
      const { x = 0, y = 0, width = 0, height = 0 } = (await from.boundingBox()) ?? {}
      await page.mouse.move(x + width / 2, y + height / 2)
      await page.mouse.down()
      await page.mouse.move(x + width / 2 + right, y + height / 2 + down, { steps: 4 })
      await page.mouse.up()
    }
    await title.waitFor()
    if (hand === mouse) {
      await drag(title, 200, 90)
      await eventually(async () => (await state()).windows[id]!.floating_rect.x > start.x, 'a moved window')
      await drag(corner, 120, 60)
    } else {
      await keyboard.begin('desktops')
      await reach(title)
      for (const key of ['Right', 'Right', 'Down']) await page.keyboard.press(`Shift+Arrow${key}`)
      await eventually(async () => (await state()).windows[id]!.floating_rect.x > start.x, 'a moved window')
      await reach(corner)
      for (const key of ['Right', 'Down', 'Down']) await page.keyboard.press(`Arrow${key}`)
    }
    await eventually(async () => (await state()).windows[id]!.floating_rect.height > start.height, 'a larger window')
    const { x, y, width, height } = (await state()).windows[id]!.floating_rect
    assert.ok(x > start.x && y > start.y && width > start.width, JSON.stringify({ x, y, width, height }))
    const place = async (on: Page) => JSON.stringify(await on.getByRole('article', { name: 'Tasks' }).boundingBox())
    await eventually(async () => (await place(second)) === (await place(page)), 'the same place in the other browser')
    await other.close()
    // The whole window stays on the desktop.
    await title.focus()
    for (let n = 0; n < 20; n++) await page.keyboard.press('Shift+ArrowLeft')
    await eventually(async () => (await state()).windows[id]!.floating_rect.x === 0, 'a window at the edge')
    await act(hand, ['press', 'Close Tasks'])
    await title.waitFor({ state: 'detached' })
  })

test('an edit of a persona is not lost when the file changes meanwhile', async () => {
  await see('manage/agents/echo/soul')
  const field = page.getByLabel('SOUL.md', { exact: true })
  await field.fill('You doubt, and say so.')
  const { digest } = await scene.api<{ digest: string }>('GET', '/api/agents/echo/soul/text')
  await scene.api('PUT', '/api/agents/echo/soul', { body: 'You agree.', expected_digest: digest })
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('The file has changed since it was read').waitFor()
  assert.is(await field.inputValue(), 'You doubt, and say so.')
  await page.getByRole('button', { name: 'Save over the change' }).click()
  await page.getByRole('group').getByRole('button', { name: 'Save over the change' }).click()
  await page.getByText('The file has changed since it was read').waitFor({ state: 'detached' })
  assert.is((await scene.api<{ text: string }>('GET', '/api/agents/echo/soul/text')).text, 'You doubt, and say so.')
  await field.fill('---\ncolour: red\n---\nText')
  await page.getByText('2:1', { exact: true }).waitFor()
})

test('an archive for support is downloaded', async () => {
  await see('manage/support')
  await act(mouse, ['check', 'I agree'])
  await act(mouse, ['press', 'Make the archive'])
  const [download] = await Promise.all([page.waitForEvent('download'), act(mouse, ['press', 'Download'])])
  assert.match(download.suggestedFilename(), /\.(?:tar\.gz|tgz)$/)
  const bytes = readFileSync(await download.path())
  assert.equal([...bytes.subarray(0, 2)], [0x1f, 0x8b])
})

test('hostile names run nothing and are shown as text', async () => {
  const { api, workspace, at } = scene
  const attempts = payloads.slice(0, 40).map((payload, n) => {
    const job = { name: `${n} ${payload}`, agent_name: 'echo', prompt: payload, enabled: false }
    const schedule = { mode: 'cron', expr: '0 9 * * *' }
    return at.request('socket', 'POST', '/api/automation/jobs', { ...job, schedule, scope: 'global' })
  })
  const accepted = (await Promise.all(attempts)).filter(({ status }) => status === 201)
  assert.ok(accepted.length > 30, `${accepted.length} names of jobs`)
  const [markup = ''] = payloads.filter(payload => payload.startsWith('<img src=x onerror=window'))
  await api('PATCH', `/api/workspaces/${workspace}`, { name: markup })
  await api('PUT', '/api/vault/secrets', { ref: 'vault:hooks/x', secret_value: 'abcdefgh', kind: 'markup' })
  await api('POST', `/api/workspaces/${workspace}/network/channels`, { channel: 'markup', purpose: markup })
  const server = { name: 'markup', transport: 'stdio', command: 'false', args: [markup] }
  await api('PUT', '/api/settings/mcp-servers/markup?scope=global', { server })
  const instructions = [markup, ...payloads.filter(payload => !/\p{Cc}/u.test(payload)).slice(0, 40)]
  at.writeHome('agents/markup/AGENT.md', `---\nname: markup\ncommand: 'true'\n---\n${instructions.join('\n')}\n`)
  await api('POST', '/api/extensions', { path: hostileAdapter(at), allow_unverified: true })
  const bridge = { platform: 'webhook', extension_name: 'bridge-webhook', scope: 'global', enabled: false }
  const provider_config = { listen_addr: '127.0.0.1:9', path: '/x', public_url: 'javascript:window.__ran=1' }
  const { bridge: made } = await api<{ bridge: { id: string } }>('POST', '/api/bridges', {
    ...{ ...bridge, provider_config, display_name: markup, routing_policy: {} },
  })
  const message = { channel: 'talk', session_id: others.session, kind: 'say', body: { text: markup } }
  const { message: first } = await api<{ message: { thread_id: string } }>(
    'POST',
    `/api/workspaces/${workspace}/network/send`,
    message,
  )
  for (const text of payloads.slice(0, 30))
    await at.request('socket', 'POST', `/api/workspaces/${workspace}/network/send`, {
      ...{ ...message, thread_id: first.thread_id, body: { text } },
    })
  const hook = { name: markup, event: 'webhook', endpoint_slug: 'markup', webhook_secret_value: '0123456789abcdef' }
  const { trigger } = await api<{ trigger: { id: string } }>('POST', '/api/automation/triggers', {
    ...{ ...hook, agent_name: 'echo', prompt: markup, scope: 'global', enabled: false },
  })
  const approval = await waitingCall(at, workspace, others.session, markup)
  const lines = payloads.map(msg =>
    JSON.stringify({ level: 'error', time: new Date().toISOString(), plugin: msg, msg }),
  )
  appendFileSync(path.join(at.home, 'logs/svc.log'), `${lines.join('\n')}\n${markup}\n`)
  const views = [
    ...['automation', 'automation/calendar/month', 'manage/agents/markup', 'manage/mcp/markup', 'manage/audit'],
    ...['manage/vault', `manage/workspaces/${workspace}`, 'manage/network/channels/markup', 'manage/logs/program'],
    ...[`manage/bridges/${made.id}`, `manage/bridges/${made.id}/edit`, `manage/approvals/${approval}`],
    ...['manage/network/channels/talk', `manage/network/channels/talk/${first.thread_id}`],
    ...[`automation/triggers/${trigger.id}`, `automation/triggers/${trigger.id}/edit`],
  ]
  for (const view of views) {
    await see(view)
    if (view !== 'manage/vault' && view !== 'automation/calendar/month' && view !== 'manage/audit')
      await content()
        .getByText(view === 'automation' ? payloads[0]! : markup)
        .filter({ visible: true })
        .first()
        .waitFor()
        .catch(error => assert.unreachable(`${view}: ${error.message}`))
    const foreign = ':is(script, iframe, object, embed, img, style, link, base, meta, video, audio, math, marquee)'
    assert.is(await content().locator(foreign).count(), 0, view)
    assert.is(await content().locator('a[href^="javascript:" i]').count(), 0, view)
  }
  // A form that is made from the schema of an adapter.
  await see('manage/bridges/+')
  await page.getByLabel('Platform').selectOption({ label: payloads.find(payload => !/\p{Cc}/u.test(payload)) ?? '' })
  await content().locator('summary').click()
  const asked = content().locator('form').locator('input, select, textarea')
  assert.ok((await asked.count()) > 30, 'a field for each member')
  assert.is(await content().locator('form :is(script, iframe, object, embed, img, style, link)').count(), 0)
  assert.is(await page.evaluate('window.__ran'), undefined)
  assert.equal(scene.misdeeds, [])
})

/** Details of things that the tests before have made. */
async function detailViews(): Promise<string[]> {
  const { api, workspace } = scene
  const { bridges } = await api<{ bridges: { id: string; enabled: boolean }[] }>('GET', '/api/bridges')
  const { triggers } = await api<{ triggers: { id: string }[] }>('GET', '/api/automation/triggers')
  const { approvals } = await api<{ approvals: { id: string }[] }>('GET', '/api/tool-approvals')
  const talk = `/api/workspaces/${workspace}/network/channels/talk/threads`
  const { threads } = await api<{ threads: { thread_id: string }[] }>('GET', talk)
  const [bridge, trigger, approval, thread] = [bridges[0], triggers[0], approvals[0], threads[0]]
  return [
    ...[`bridges/${bridge?.id}`, `bridges/${bridge?.id}/edit`, `approvals/${approval?.id}`, 'grants/+'],
    ...['extensions/hostile', 'network/channels/talk', `network/channels/talk/${thread?.thread_id}`],
    'network/daemons',
  ]
    .map(name => `manage/${name}`)
    .concat(`automation/triggers/${trigger?.id}`, `automation/triggers/${trigger?.id}/edit`)
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

test('axe finds nothing wrong with any view in either scheme, and all fit a phone', async () => {
  const names = [
    'tools',
    'approvals',
    'grants',
    'mcp',
    'marketplace',
    'bundles',
    'bridges',
    'network',
    'workspaces',
    'vault',
    'audit',
    'support',
  ]
  const views = [
    ...[
      'manage',
      'manage/agents/echo',
      'manage/agents/echo/soul',
      'manage/agents/echo/heartbeat',
      'manage/logs/program',
    ],
    ...names.map(name => `manage/${name}`),
    ...['mcp/+', 'mcp/markup', 'vault/+', 'network/daemons/+', 'bridges/+', 'extensions/+', 'workspaces/+'].map(
      name => `manage/${name}`,
    ),
    ...[`manage/workspaces/${scene.workspace}`, `manage/tools/${encodeURIComponent(tool)}`, 'manage/audit/1'],
    ...(await detailViews()),
    ...['automation/jobs/+', 'automation/triggers/+', 'automation/calendar/week', 'automation/calendar/month'],
  ]
  const wrong: string[] = []
  for (const view of views) {
    await page.setViewportSize({ width: 1280, height: 860 })
    await page.emulateMedia({ colorScheme: 'light' })
    await see(view)
    wrong.push(...(await violations({})).map(text => `${view}: ${text}`))
    // Only colours depend on the scheme.
    await page.emulateMedia({ colorScheme: 'dark' })
    wrong.push(...(await violations({ runOnly: ['color-contrast'] })).map(text => `${view}, dark: ${text}`))
    await page.setViewportSize({ width: 390, height: 800 })
    const wide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    if (wide > 0) wrong.push(`${view}: ${wide} pixels wider than a phone`)
  }
  assert.equal(wrong, [])
})

async function violations(options: object): Promise<string[]> {
  if (!(await page.evaluate<boolean>('Boolean(window.axe)'))) await page.evaluate(axe)
  const all = JSON.stringify({ resultTypes: ['violations'], ...options })
  return page.evaluate<string[]>(`axe.run(${all}).then(({ violations }) => violations.map(({ id, nodes }) =>
    id + ' ' + nodes.slice(0, 3).map(({ html, any }) => html.slice(0, 160) + ' ' + (any[0]?.message ?? '')).join(' | ')))`)
}

test.run()
