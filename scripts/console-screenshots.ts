// Makes the pictures of docs/console.md from the built console: `npm run console:screenshots`. It needs Chromium.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openScene, type Scene } from '../test/plugins/desk/console/scene.js'

const folder = join(import.meta.dirname, '../docs/console')
const views = ['home', 'sessions', 'session', 'work', 'automation', 'settings', 'doctor'] as const

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

/** Something to look at: a session that waits for an answer, tasks and a job. Resolves to the id of the session. */
async function furnish({ api, session, workspace }: Scene): Promise<string> {
  const id = await session({ name: 'Mend the parser' })
  const lines = [
    'say The tests fail because quotes are not unescaped. I mend `src/parse.ts`.',
    `update ${JSON.stringify(plan)}`,
    `update ${JSON.stringify(edit)}`,
    'say The change is small, and **all tests pass**.',
    `ask ${JSON.stringify(question)}`,
  ]
  await api('POST', `/api/workspaces/${workspace}/sessions/${id}/prompt`, { text: lines.join('\n') })
  const tasks = [
    ['Write the release notes', true, 'medium'],
    ['Mend the flaky test of the scheduler', false, 'high'],
    ['Look at the report of a customer', false, 'medium'],
  ] as const
  for (const [title, draft, priority] of tasks)
    await api('POST', '/api/tasks', { title, draft, priority, scope: 'workspace', workspace })
  const schedule = { mode: 'cron', expr: '0 9 * * 1-5' }
  const job = { name: 'Morning report', agent_name: 'echo', prompt: 'Say what changed since yesterday.', schedule }
  await api('POST', '/api/automation/jobs', { ...job, scope: 'workspace', workspace_id: workspace }).catch(
    console.error,
  )
  return id
}

const scene = await openScene()
try {
  mkdirSync(folder, { recursive: true })
  const id = await furnish(scene)
  const places: Readonly<Record<string, string>> = {
    session: `sessions/${id}`,
    settings: 'manage/settings/http.port',
    doctor: 'manage/doctor',
  }
  for (const colorScheme of ['light', 'dark'] as const) {
    const context = await scene.context({ colorScheme, viewport: { width: 1120, height: 700 } })
    const page = await scene.page(context)
    for (const view of views) {
      await page.goto(`${scene.base}/console/#/${places[view] ?? view}`)
      await page.getByText('Connected').waitFor()
      if (view === 'session') await page.getByRole('button', { name: 'Allow once' }).waitFor()
      await page.locator('.loading').first().waitFor({ state: 'detached' })
      // The stream stays open, so that the network is never idle.
      await page.waitForTimeout(500)
      await page.screenshot({ path: join(folder, `${view}-${colorScheme}.png`) })
    }
    await context.close()
  }
} finally {
  await scene.close()
}
