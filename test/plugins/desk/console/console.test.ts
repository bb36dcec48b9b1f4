// alone, timeout: 360s: a daemon and a browser, and the library of the browser replaces functions of Node
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { BrowserContext, Locator, Page } from 'playwright-core'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { terminalLines } from '../../../../plugins/desk/console/app/ui/ansi.js'
import { placeInLayers } from '../../../../plugins/desk/console/app/views/work/layers.js'
import { eventually } from '../../../fixtures/session-world.js'
import { busyMonth } from './furnish.js'
import { payloads } from './payloads.js'
import { openScene, type Scene } from './scene.js'

let scene: Scene
let context: BrowserContext
let page: Page
/** The browser of the current test, and the page of the others. */
let own: { readonly context: BrowserContext; readonly former: Page } | undefined

test.before(async () => {
  scene = await openScene()
  context = await scene.context()
})
test.after(() => scene?.close())
test.after.each(async () => {
  await context?.setOffline(false)
  if (own === undefined) return
  page = own.former
  await own.context.close()
  own = undefined
})

/** Gives the current test a browser of its own. */
async function ownPage(view?: string): Promise<void> {
  own = { context: await scene.context(), former: page }
  page = await scene.page(own.context, view)
}

const see = (name: string) => page.goto(`${scene.base}/console/#/${name}`)
const heading = (name: string) => page.getByRole('heading', { level: 1, name })

test('output of a terminal keeps what is visible: colours, lines that were written over', () => {
  const written =
    'one\r\u001b[32mtwo\u001b[0m!\nabc\b\bX\u001b[K\n\u001b]0;title\u0007\u001b[2J\u001b[38;5;9mred\u001b[1;31mer\t|'
  const shown = terminalLines(written).map(pieces => pieces.map(({ words, classes }) => `${classes}:${words}`))
  assert.equal(shown, [['green:two', ':!'], [':aX'], [':red', 'bold red:er', ':   ', 'bold red:|']])
  assert.is(terminalLines('x\n'.repeat(5000)).length, 1000)
})

test('a task stands right of all that it depends on, also in a circle', () => {
  const edges = ['ab', 'ac', 'bd', 'cd', 'xd', 'pq', 'qp'].map(([from = '', to = '']) => ({ from, to }))
  const layers = Object.fromEntries(placeInLayers([...'abcdxpq'], edges).map(({ id, layer }) => [id, layer]))
  assert.equal([layers.a, layers.x, layers.b, layers.c, layers.d], [0, 0, 1, 1, 2])
  assert.ok(layers.p !== layers.q)
})

test('a link opens the console once', async () => {
  const link = await scene.link()
  page = await context.newPage()
  await page.goto(link)
  await heading('Home').waitFor()
  assert.not.match(page.url(), /[0-9a-f]{64}/, 'the code is gone from the address')
  const other = await scene.context()
  const stranger = await other.newPage()
  await stranger.goto(link)
  await stranger.getByRole('alert').getByText('this link was used already').waitFor()
  await stranger.getByText('svc open', { exact: true }).waitFor()
  await other.close()
})

test('a prompt is sent and its answer is shown, and a draft survives a reload', async () => {
  const id = await scene.session({ name: 'First words' })
  await see(`sessions/${id}`)
  const field = page.getByLabel('Message', { exact: true })
  await field.fill('a draft that is')
  await page.reload()
  assert.is(await field.inputValue(), 'a draft that is')
  await field.fill('say **all good** here')
  await page.keyboard.press('Enter')
  await page.locator('.message.assistant strong', { hasText: 'all good' }).waitFor()
  assert.is(await field.inputValue(), '')
})

const asks = (id: string, title: string) => {
  const options = ['reject_once', 'allow_once'].map(kind => ({ optionId: kind, name: kind, kind }))
  return `ask ${JSON.stringify({ toolCall: { toolCallId: id, title, kind: 'execute' }, options })}`
}

test('permission questions are answered by mouse and by keyboard', async () => {
  const id = await scene.session({ name: 'Questions' })
  await see(`sessions/${id}`)
  await page.getByLabel('Message', { exact: true }).fill(`${asks('p1', 'git push')}\n${asks('p2', 'rm -r build')}`)
  await page.getByRole('button', { name: 'Send' }).click()
  const question = page.getByRole('region', { name: 'The agent asks' })
  await question.getByText('git push').waitFor()
  await question.getByRole('button', { name: 'Allow once' }).click()
  await question.getByText('rm -r build').waitFor()
  await page.getByLabel('Message', { exact: true }).focus()
  for (let steps = 0; steps < 12; steps++) {
    await page.keyboard.press('Shift+Tab')
    if ((await page.evaluate('document.activeElement?.textContent')) === 'Reject') break
  }
  await page.keyboard.press('Enter')
  await page.locator('.message.assistant').getByText('answer: reject_once').waitFor()
  assert.match(await page.locator('.message.assistant').innerText(), /answer: allow_once[\s\S]*answer: reject_once/)
})

test('a task is created and moved', async () => {
  await see('work')
  await page.getByRole('button', { name: 'New task' }).click()
  await page.getByLabel('Title').fill('Mend the tests')
  await page.getByRole('button', { name: 'Create' }).click()
  const lane = (name: string) => page.getByRole('region', { name, exact: true })
  await lane('Draft').getByText('Mend the tests').waitFor()
  await page.getByRole('button', { name: 'Cancel task' }).click()
  await lane('Done').getByText('Mend the tests').waitFor()
  assert.is(await lane('Draft').getByText('Mend the tests').count(), 0)
})

test('the palette opens a view by keyboard', async () => {
  await see('home')
  await heading('Home').waitFor()
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Search views and commands' }).fill('doctor')
  await page.getByRole('option', { name: 'Doctor' }).first().waitFor()
  await page.keyboard.press('Enter')
  await heading('Doctor').waitFor()
  assert.match(page.url(), /#\/manage\/doctor$/)
})

test('a setting is changed and shows the source of its value', async () => {
  await see('manage/settings/log.level')
  const details = page.getByRole('complementary', { name: 'Details' })
  await details.getByText('default', { exact: true }).first().waitFor()
  await details.locator('select, textarea').first().waitFor()
  const field = details.locator('select, textarea').first()
  if ((await field.evaluate(node => node.tagName)) === 'SELECT') await field.selectOption('debug')
  else await field.fill('debug')
  await details.getByRole('button', { name: 'Save' }).click()
  await details.getByText('file', { exact: false }).first().waitFor()
  assert.match(readFileSync(`${scene.at.home}/config.json`, 'utf8'), /debug/)
})

/** Presses a key until an element has the focus. */
async function tabTo(target: Locator, key = 'Tab'): Promise<void> {
  await target.waitFor()
  for (let steps = 0; steps < 80; steps++) {
    if (await target.evaluate(node => node === node.ownerDocument.activeElement)) return
    await page.keyboard.press(key)
  }
  throw new Error(`the keyboard does not reach ${target}`)
}

/** Activates a control by mouse, or by keyboard alone. */
const by = {
  mouse: (target: Locator) => target.click(),
  async keyboard(target: Locator) {
    await tabTo(target)
    await page.keyboard.press('Enter')
  },
} as const

/** Chooses an option of a list. */
const choose = {
  mouse: (list: Locator, label: string) => list.selectOption({ label }),
  async keyboard(list: Locator, label: string) {
    await tabTo(list)
    const chosen = () =>
      list.evaluate(node => (node as unknown as { selectedOptions: { text: string }[] }).selectedOptions[0]?.text)
    for (let steps = 0; steps < 40 && (await chosen()) !== label; steps++) await page.keyboard.press('ArrowDown')
    for (let steps = 0; steps < 40 && (await chosen()) !== label; steps++) await page.keyboard.press('ArrowUp')
    assert.is(await chosen(), label)
  },
} as const

for (const hand of ['mouse', 'keyboard'] as const) {
  const press = by[hand]

  test(`home: the figures of a plot are shown, by ${hand}`, async () => {
    await ownPage()
    await busyMonth(scene, page)
    await page.reload()
    await page.locator('.plot-canvas canvas').first().waitFor()
    await press(page.getByText('Outcomes of 14 days: figures'))
    await page.getByRole('region', { name: 'Outcomes of 14 days' }).getByRole('row').nth(14).waitFor()
    assert.is(await page.locator('details.as-table[open]').count(), 1)
  })

  test(`sessions: a file is attached, and the conversation goes back to before its prompt, by ${hand}`, async () => {
    await ownPage()
    const id = await scene.session({ name: `Rewound by ${hand}` })
    await see(`sessions/${id}`)
    const chosen = page.waitForEvent('filechooser')
    await press(page.getByRole('button', { name: 'Attach files' }))
    await (await chosen).setFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('note') })
    await page.getByText('4 B', { exact: true }).waitFor()
    const field = page.getByLabel('Message', { exact: true })
    await field.fill('blocks')
    await page.keyboard.press('Enter')
    await page.locator('.message.assistant').waitFor()
    assert.is(await page.locator('.attachment').count(), 0)
    await press(page.getByRole('button', { name: 'Rewind to before: blocks' }))
    const dialog = page.getByRole('dialog', { name: 'Rewind to before this prompt?' })
    await press(dialog.getByRole('button', { name: 'Rewind', exact: true }))
    await dialog.waitFor({ state: 'detached' })
    await page.locator('.message.assistant').waitFor({ state: 'detached' })
    assert.is(await field.inputValue(), 'blocks')
  })

  test(`sessions: one is stopped, archived and taken out again, by ${hand}`, async () => {
    await ownPage()
    const id = await scene.session({ name: `Archived by ${hand}` })
    await see(`sessions/${id}`)
    await press(page.getByRole('button', { name: 'Stop session' }))
    await press(page.getByRole('button', { name: 'Archive', exact: true }))
    const dialog = page.getByRole('dialog', { name: 'Archive this session?' })
    await press(dialog.getByRole('button', { name: 'Archive', exact: true }))
    await press(page.getByRole('link', { name: 'Archived', exact: true }))
    await press(page.getByRole('link', { name: `Archived by ${hand}` }))
    await press(page.getByRole('button', { name: 'Take out of the archive' }))
    await page.getByRole('button', { name: 'Archive', exact: true }).waitFor()
    assert.is(await page.getByRole('button', { name: 'Take out of the archive' }).count(), 0)
  })

  test(`work: a task gets a dependency, and the graph leads to it, by ${hand}`, async () => {
    await ownPage()
    const make = (title: string) =>
      scene.api<{ task: { id: string } }>('POST', '/api/tasks', { title, scope: 'global' })
    const names = [`Build by ${hand}`, `Ship by ${hand}`] as const
    const [, { task }] = [await make(names[0]), await make(names[1])]
    await see(`work/${task.id}`)
    await choose[hand](page.getByLabel('Another task'), names[0])
    await press(page.getByRole('button', { name: 'Add', exact: true }))
    await page.getByRole('button', { name: 'Remove', exact: true }).waitFor()
    await press(page.getByRole('link', { name: 'Dependencies' }))
    await press(page.getByRole('link', { name: `${names[0]} ready` }))
    await page.getByRole('complementary').getByRole('heading', { name: names[0] }).waitFor()
    await press(page.getByRole('link', { name: 'Runs', exact: true }))
    await page.getByText('svc task run all').waitFor()
    assert.match(page.url(), /#\/work\/runs$/)
  })

  test(`desktops: windows are opened, moved and put back, and another browser shows it, by ${hand}`, async () => {
    await ownPage('desktops')
    const other = await scene.context()
    const second = await scene.page(other, 'desktops')
    const window = (name: string, on = page) => on.getByRole('article', { name, exact: true })
    for (const what of ['Inbox', 'Tasks']) {
      await choose[hand](page.getByLabel('Show'), what)
      await press(page.getByRole('button', { name: 'Open window' }))
      await window(what, second).waitFor()
    }
    const left = async (name: string, on = page) => (await window(name, on).boundingBox())?.x ?? 0
    assert.ok((await left('Inbox')) < (await left('Tasks')))
    const titles = ['Move Tasks', 'Move Inbox'].map(name => page.getByRole('button', { name }))
    if (hand === 'mouse') {
      const box = await window('Inbox').boundingBox()
      await titles[0]?.dragTo(window('Inbox'), { targetPosition: { x: 8, y: (box?.height ?? 0) / 2 } })
    } else {
      await tabTo(titles[0] as Locator)
      await page.keyboard.press('Shift+ArrowLeft')
    }
    await eventually(
      async () => (await left('Tasks', second)) < (await left('Inbox', second)),
      'the order in the other browser',
    )
    await press(page.getByRole('button', { name: 'Undo' }))
    await eventually(
      async () => (await left('Tasks', second)) > (await left('Inbox', second)),
      'the order in the other browser',
    )
    for (const what of ['Inbox', 'Tasks']) await press(page.getByRole('button', { name: `Close ${what}` }))
    await second.getByText('This desktop is empty').waitFor()
    await other.close()
  })
}

test('two tabs read one stream of events', async () => {
  const opened: string[] = []
  const fresh = await scene.context()
  fresh.on('request', request => request.url().includes('/api/logs/stream') && opened.push(request.url()))
  const first = await scene.page(fresh)
  await first.getByText('Connected').waitFor()
  const second = await fresh.newPage()
  await second.goto(`${scene.base}/console/#/work`)
  await second.getByText('Connected').waitFor()
  await scene.api('POST', '/api/tasks', { title: 'Seen by both', scope: 'global', draft: true })
  await second.getByText('Seen by both').waitFor()
  assert.is(opened.length, 1)
  await first.close()
  await scene.api('POST', '/api/tasks', { title: 'Seen by the other', scope: 'global', draft: true })
  await second.getByText('Seen by the other').waitFor()
  await fresh.close()
})

test('a lost network is shown, and missed events are shown after it', async () => {
  await see('work')
  await page.getByText('Connected').waitFor()
  await context.setOffline(true)
  await page.getByText('Connection lost').waitFor()
  await scene.api('POST', '/api/tasks', { title: 'Made meanwhile', scope: 'global', draft: true })
  await context.setOffline(false)
  await page.getByText('Connected').waitFor()
  await page.getByText('Made meanwhile').waitFor()
  assert.is(await page.getByText('Connection lost').count(), 0)
})

test('hostile content runs nothing and loads nothing', async () => {
  const id = await scene.session({ name: payloads[0] })
  const lines = payloads.flatMap((payload, n) => [
    `say ${payload}`,
    `think ${payload}`,
    `update ${JSON.stringify({
      ...{ sessionUpdate: 'tool_call', toolCallId: `h${n}`, title: payload, kind: 'read', status: 'completed' },
      content: [
        { type: 'content', content: { type: 'text', text: payload } },
        { type: 'diff', path: payload, oldText: '', newText: payload },
        { type: 'terminal', terminalId: `h${n}` },
      ],
      _meta: { terminal_output: { terminal_id: `h${n}`, data: payload } },
      rawInput: { path: payload },
    })}`,
  ])
  await see(`sessions/${id}`)
  await page.getByLabel('Message', { exact: true }).fill(`${lines.join('\n')}\nsay all said`)
  await page.getByRole('button', { name: 'Send' }).click()
  await page.locator('.message.assistant').getByText('all said').waitFor()
  // What is closed is opened, so that all of it is in the page.
  await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
  const foreign =
    '.transcript :is(script, iframe, object, embed, img, svg, form, style, link, base, meta, video, audio, math)'
  assert.is(await page.locator(foreign).count(), 0)
  const links = await page.locator('.transcript a[href]').evaluateAll(all => all.map(a => a.getAttribute('href') ?? ''))
  assert.equal(
    links.filter(href => !/^(https?|mailto):/.test(href)),
    [],
  )
  const body = (title: string) => ({ title, scope: 'global', draft: true })
  const made = payloads.slice(0, 60).map(title => scene.at.request('socket', 'POST', '/api/tasks', body(title)))
  // Some are no titles: they have control characters.
  const accepted = (await Promise.all(made)).filter(({ status }) => status === 201)
  assert.ok(accepted.length > 50, `${accepted.length} titles`)
  for (const view of ['home', 'sessions', 'work', 'manage/logs']) {
    await see(view)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.locator('.loading').first().waitFor({ state: 'detached' })
  }
  const windows = `/api/workspaces/${scene.workspace}/window-manager`
  for (const pathname of payloads.slice(0, 6)) {
    const { revision } = await scene.api<{ revision: number }>('GET', windows)
    const payload = { app: pathname, instance_key: pathname, route: { pathname, search: {} } }
    await scene.api('POST', `${windows}/commands`, { expected_revision: revision, command_id: 'window.open', payload })
  }
  await see('desktops')
  await page
    .getByText(/^The console cannot show/)
    .first()
    .waitFor()
  assert.is(await page.locator('.canvas :is(script, iframe, img, svg, form)').count(), 0)
  await see(`sessions/${id}`)
  const named = payloads.filter(name => !/[/\p{Cc}]/u.test(name)).slice(0, 20)
  const files = named.map(name => ({ name, mimeType: 'text/plain', buffer: Buffer.from(name) }))
  await page.locator('input[type=file]').setInputFiles(files)
  await page
    .locator('.attachment')
    .nth(named.length - 1)
    .waitFor()
  assert.is(await page.locator('.attachments :is(script, iframe, img, svg, form)').count(), 0)
  const forwarded = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': '"><script>alert(1)</script>' }
  const served = await context.request.get(`${scene.base}/console/`, { headers: forwarded })
  assert.not.match(await served.text(), /evil\.example|alert/)
  assert.is(await page.evaluate('window.__ran'), undefined)
  assert.ok(payloads.length >= 200, `${payloads.length} payloads`)
  assert.equal(scene.misdeeds, [])
})

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

for (const colorScheme of ['light', 'dark'] as const)
  test(`axe finds no violation in any view, ${colorScheme}`, async () => {
    const id = await scene.session({ name: 'Looked at' })
    const at = `/api/workspaces/${scene.workspace}/sessions/${id}`
    const plan = { sessionUpdate: 'plan', entries: [{ content: 'Look', status: 'completed', priority: 'low' }] }
    const text = ['say # Title\nsay `code` and **more**', `update ${JSON.stringify(plan)}`, 'tools 1', asks('p', 'ls')]
    await scene.api('POST', `${at}/prompt`, { text: text.join('\n') })
    const fresh = await scene.context({ colorScheme })
    page = await scene.page(fresh)
    const manage = ['agents', 'skills', 'extensions', 'settings', 'doctor', 'logs', 'plugins']
    const parts = ['sessions/archived', 'work/graph', 'work/runs', 'work/inbox', 'desktops']
    const views = [
      ...parts,
      'home',
      'sessions',
      `sessions/${id}`,
      'work',
      'automation',
      'automation/triggers',
      'manage',
    ]
    // The light scheme has all rules; only colours depend on the scheme.
    const options = colorScheme === 'light' ? {} : { runOnly: ['color-contrast', 'link-in-text-block'] }
    const wrong: string[] = []
    for (const view of [...views, ...manage.map(name => `manage/${name}`), 'manage/settings/http.port', 'nowhere']) {
      await see(view)
      await page.locator('.loading').first().waitFor({ state: 'detached' })
      if (view.endsWith(id)) await page.getByRole('button', { name: 'Allow once' }).waitFor()
      wrong.push(...(await violations(page, options)).map(text => `${view}: ${text}`))
    }
    assert.equal(wrong, [])
    await fresh.close()
  })

async function violations(page: Page, options: object): Promise<string[]> {
  // A view is not another page: what the first one loaded is still there.
  if (!(await page.evaluate<boolean>('Boolean(window.axe)'))) await page.evaluate(axe)
  const all = JSON.stringify({ resultTypes: ['violations'], ...options })
  return page.evaluate<string[]>(`axe.run(${all}).then(({ violations }) => violations.map(({ id, nodes }) =>
    id + ' ' + nodes.slice(0, 3).map(({ html, any }) => html.slice(0, 160) + ' ' + (any[0]?.message ?? '')).join(' | ')))`)
}

test('an ended session signs its page out', async () => {
  const fresh = await scene.context()
  const one = await scene.page(fresh)
  await scene.at.svc('open', '--revoke')
  await one.getByRole('heading', { name: 'Open the console' }).waitFor()
  assert.is(await one.evaluate('localStorage.length'), 0)
  await fresh.close()
})

test('the page recovers from a restart of the daemon', async () => {
  page = await scene.page(context)
  const id = await scene.session({ name: 'Restarted' })
  await see(`sessions/${id}`)
  await page.getByText('Connected').waitFor()
  await scene.at.svc('daemon', 'stop')
  await page.getByText(/Connecting|Connection lost/).waitFor()
  await scene.at.svc('daemon', 'start')
  await page.getByText('Connected').waitFor()
  await page.getByLabel('Message', { exact: true }).fill('say here again')
  await page.keyboard.press('Enter')
  await page.locator('.message.assistant').getByText('here again').waitFor()
  assert.is(await heading('Restarted').count(), 1, 'the session of the browser outlives the daemon')
})

test.run()
