import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import type { Scene } from './scene.js'

const plan = {
  sessionUpdate: 'plan',
  entries: [
    { content: 'Read the parser', status: 'completed', priority: 'medium' },
    { content: 'Mend the escape of quotes', status: 'in_progress', priority: 'medium' },
    { content: 'Run the tests', status: 'pending', priority: 'medium' },
  ],
}
const edit = {
  ...{ sessionUpdate: 'tool_call', toolCallId: 'edit', title: 'Edit src/parse.ts', kind: 'edit', status: 'completed' },
  content: [{ type: 'diff', path: 'src/parse.ts', oldText: "text.replace('\"', '')\n", newText: 'unquote(text)\n' }],
}
const question = {
  toolCall: { toolCallId: 'push', title: 'git push origin main', kind: 'execute' },
  options: ['reject_once', 'allow_once'].map(kind => ({ optionId: kind, name: kind, kind })),
}

/** Output of a terminal with colours, and with a line that is written twice. */
export const printed = [
  '\u001b[1mnode --test\u001b[0m',
  'parsing…\r\u001b[32m✔\u001b[0m unescapes quotes \u001b[2m(1.8 ms)\u001b[0m',
  '\u001b[31m✖\u001b[0m keeps lone quotes \u001b[33mexpected \u001b[36m"\u001b[0m',
].join('\n')

const terminal = {
  ...{ sessionUpdate: 'tool_call', toolCallId: 'test', title: 'node --test', kind: 'execute', status: 'completed' },
  content: [{ type: 'terminal', terminalId: 'term-1' }],
  _meta: {
    terminal_output: { terminal_id: 'term-1', data: printed },
    terminal_exit: { terminal_id: 'term-1', exit_code: 1 },
  },
}

export interface Furnished {
  /** A session that waits for an answer. */
  readonly session: string
  /** A task that others depend on. */
  readonly task: string
}

/** Something to look at: a session that waits for an answer, tasks with dependencies and runs, a job, desktops. */
export async function furnish({ at, api, session, workspace }: Scene): Promise<Furnished> {
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.org', ...words], { cwd: `${at.folder}/demo` })
  git('init', '-q')
  writeFileSync(`${at.folder}/demo/README.md`, '# Demo\n')
  git('add', '.')
  git('commit', '-qm', 'first')
  const id = await session({ name: 'Mend the parser' })
  const lines = [
    'say The tests fail because quotes are not unescaped. I mend `src/parse.ts`.',
    `update ${JSON.stringify(plan)}`,
    `update ${JSON.stringify(edit)}`,
    `update ${JSON.stringify(terminal)}`,
    'say The change is small, and **all tests pass**.',
    `ask ${JSON.stringify(question)}`,
  ]
  await api('POST', `/api/workspaces/${workspace}/sessions/${id}/prompt`, { text: lines.join('\n') })
  const tasks: string[] = []
  for (const [title, draft, priority, needs] of [
    ['Mend the flaky test of the scheduler', false, 'high', []],
    ['Look at the report of a customer', false, 'medium', []],
    ['Release the parser', false, 'medium', [0, 1]],
    ['Write the release notes', true, 'medium', [2]],
    ['Tell the customer', true, 'low', [2]],
  ] as const) {
    const body = { title, draft, priority, scope: 'workspace', workspace }
    const { task } = await api<{ task: { id: string } }>('POST', '/api/tasks', body)
    for (const need of needs)
      await api('POST', `/api/tasks/${task.id}/dependencies`, { depends_on_task_id: tasks[need], kind: 'blocks' })
    tasks.push(task.id)
  }
  await api('POST', `/api/tasks/${tasks[0]}/runs`, {})
  const schedule = { mode: 'cron', expr: '0 9 * * 1-5' }
  const job = { name: 'Morning report', agent_name: 'echo', prompt: 'Say what changed since yesterday.', schedule }
  await api('POST', '/api/automation/jobs', { ...job, scope: 'workspace', workspace_id: workspace })
  const windows = `/api/workspaces/${workspace}/window-manager`
  for (const [app, pathname] of [
    ['sessions', `/${id}`],
    ['work', '/'],
    ['attention', '/'],
  ]) {
    const { revision } = await api<{ revision: number }>('GET', windows)
    const payload = { app, instance_key: pathname, route: { pathname, search: {} } }
    await api('POST', `${windows}/commands`, { expected_revision: revision, command_id: 'window.open', payload })
  }
  return { session: id, task: tasks[2] ?? '' }
}

/** Gives the overview a busy month, which a new daemon has not had yet. */
export async function busyMonth({ api }: Scene, page: Page): Promise<void> {
  await page.route('**/api/observe/overview*', async route => {
    // The daemon takes the session of a browser from the browser only.
    const { pathname, search } = new URL(route.request().url())
    const { overview } = await api<{ overview: Record<string, Record<string, unknown>> }>('GET', pathname + search)
    const dayAt = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10)
    const wave = (n: number, size: number) => Math.round(size * (1.2 + Math.sin(n * 1.7) + 0.4 * Math.cos(n * 5)))
    const days = (count: number) => Array.from({ length: count }, (_, n) => count - 1 - n)
    Object.assign(overview.outcomes ?? {}, {
      ...{ completed: 54, failed: 7, canceled: 3, success_pct: 88.5 },
      days: days(Number(overview.outcomes?.window_days ?? 14)).map(n => ({
        ...{ date: dayAt(n), completed: wave(n, 5), failed: wave(n + 3, 0.8), canceled: n === 2 ? 2 : 0 },
      })),
    })
    Object.assign(overview.today ?? {}, { runs_completed: 9, runs_failed: 1, tasks_closed: 4 })
    const used = days(Number(overview.usage?.window_days ?? 7)).map(n => ({ date: dayAt(n), tokens: wave(n, 90_000) }))
    const total = used.reduce((sum, { tokens }) => sum + tokens, 0)
    Object.assign(overview.usage ?? {}, {
      ...{ total_tokens: total, estimated_cost: total / 250_000, cost_currency: 'USD', cost_status: 'estimated' },
      days: used,
      agent_share: [
        { agent_name: 'coder', tokens: Math.round(total * 0.62), fraction: 0.62 },
        { agent_name: 'reviewer', tokens: Math.round(total * 0.27), fraction: 0.27 },
        { agent_name: 'writer', tokens: Math.round(total * 0.11), fraction: 0.11 },
      ],
    })
    const buckets = days(168)
      .map(n => ({ weekday: Math.floor(n / 24), hour: n % 24, events: wave(n, n % 24 > 8 && n % 24 < 19 ? 40 : 3) }))
      .filter(({ weekday, hour }) => weekday % 6 !== 0 || hour % 5 === 0)
    const busiest = buckets.reduce((most, one) => (one.events > most.events ? one : most))
    Object.assign(overview.pulse ?? {}, { buckets, busiest })
    await route.fulfill({ json: { overview } })
  })
}
