// Makes the pictures of docs/console.md from the built console: `npm run console:screenshots [folder] [width] [views…]`. It needs
// Chromium.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { busyMonth, furnish } from '../test/plugins/desk/console/furnish.js'
import { openScene, type Scene } from '../test/plugins/desk/console/scene.js'

/** Views of Manage and Automation by the names of their pictures. */
const manage: Readonly<Record<string, string>> = {
  calendar: 'automation/calendar/week',
  job: 'automation/jobs/+',
  persona: 'manage/agents/echo/soul',
  mcp: 'manage/mcp/+',
  bridges: 'manage/bridges/+',
  grants: 'manage/grants/+',
  extension: 'manage/extensions/bridge-webhook',
  network: 'manage/network/channels/review',
  trigger: 'automation/triggers/+',
  vault: 'manage/vault',
  audit: 'manage/audit',
  log: 'manage/logs/program',
  support: 'manage/support',
}

const [folder = join(import.meta.dirname, '../docs/console'), width = '1120', ...chosen] = process.argv.slice(2)
const all = [
  ...['home', 'sessions', 'session', 'work', 'graph', 'runs', 'worktree', 'inbox', 'desktops', 'automation'],
  ...['settings', 'doctor', ...Object.keys(manage)],
]
const views = chosen.length > 0 ? chosen : all

async function furnishManage({ api, workspace }: Pick<Scene, 'api' | 'workspace'>): Promise<void> {
  const soul =
    '---\nrole: Reviewer\ntone: [plain, brief]\n---\nYou look for what breaks, and say how to reproduce it.\n'
  await api('PUT', '/api/agents/echo/soul', { body: soul, expected_digest: '' })
  const job = { agent_name: 'echo', prompt: 'say done', scope: 'workspace', workspace_id: workspace }
  const schedule = { mode: 'cron', expr: '30 2 * * *' }
  const { job: made } = await api<{ job: { id: string } }>('POST', '/api/automation/jobs', {
    ...job,
    ...{ name: 'Nightly build', schedule },
  })
  await api('POST', `/api/automation/jobs/${made.id}/trigger`)
  await api('PUT', '/api/vault/secrets', { ref: 'vault:mcp/global/github/env/TOKEN', secret_value: 'not-a-real-token' })
  const { channel } = await api<{ channel: { sessions: { id: string }[] } }>(
    'POST',
    `/api/workspaces/${workspace}/network/channels`,
    { channel: 'review', purpose: 'Reviews of changes', agent_names: ['echo'] },
  )
  const from = { channel: 'review', session_id: channel.sessions[0]?.id ?? '', kind: 'say' }
  for (const text of ['Who reviews the change of the parser?', 'The release waits for two reviews.'])
    await api('POST', `/api/workspaces/${workspace}/network/send`, { ...from, body: { text } })
  const adapter = join(import.meta.dirname, '../dist/extensions/bridge-webhook')
  await api('POST', '/api/extensions', { path: adapter, allow_unverified: true })
}

/** A worktree of the workspace with changes. */
function furnishWorktree({ at }: Pick<Scene, 'at'>): void {
  const folder = join(at.folder, 'demo.worktrees/fix-retries')
  execFileSync('git', ['worktree', 'add', '-q', '-b', 'svc/fix-retries', folder], { cwd: join(at.folder, 'demo') })
  const pause = 'export const pause = (attempt: number) =>\n  Math.min(30_000, 500 * 2 ** attempt)\n'
  writeFileSync(join(folder, 'retry.ts'), pause)
  writeFileSync(join(folder, 'notes.md'), '# Retries\n\nA pause doubles with each attempt, up to 30 seconds.\n')
}

const scene = await openScene()
try {
  mkdirSync(folder, { recursive: true })
  const { session } = await furnish(scene)
  await furnishManage(scene)
  furnishWorktree(scene)
  const places: Readonly<Record<string, string>> = {
    session: `sessions/${session}`,
    graph: 'work/graph',
    runs: 'work/runs',
    worktree: `work/worktrees/${scene.workspace}/fix-retries`,
    inbox: 'work/inbox',
    settings: 'manage/settings/http.port',
    doctor: 'manage/doctor',
    ...manage,
  }
  for (const colorScheme of ['light', 'dark'] as const) {
    const height = process.argv.length > 2 ? 1100 : 700
    const context = await scene.context({ colorScheme, viewport: { width: Number(width), height } })
    const page = await scene.page(context)
    await busyMonth(scene, page)
    await page.reload()
    for (const view of views) {
      await page.goto(`${scene.base}/console/#/${places[view] ?? view}`)
      await page.getByText('Connected').waitFor({ state: 'attached' })
      if (view === 'session') await page.getByRole('button', { name: 'Allow once' }).waitFor()
      await page.locator('.loading').first().waitFor({ state: 'detached' })
      // The stream stays open, so that the network is never idle.
      await page.waitForTimeout(500)
      await page.screenshot({ path: join(folder, `${view}-${colorScheme}.png`) })
    }
    await context.close()
  }
  if (scene.misdeeds.length > 0) console.error(scene.misdeeds)
} finally {
  await scene.close()
}
