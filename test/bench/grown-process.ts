// Fills a home with what months of use leave, and lets time pass over it: grown-process.ts HOME.
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { systemClock } from '../../kernel/clock.js'
import { createKernel } from '../../kernel/index.js'
import { type Db, definePlugin } from '../../kernel/plugin.js'
import { openStore } from '../../kernel/store/index.js'
import { inTree } from '../../plugins/index.js'
import type { SessionsService } from '../../plugins/work/sessions/service.js'
import type { TaskService } from '../../plugins/work/tasks/service.js'
import { answer } from './child.js'

const [home = ''] = process.argv.slice(2)
const DAY_MS = 24 * 60 * 60_000
const JOBS = 50
/** Prompts of a session that are kept for repetitions. */
const PROMPTS = 5

/** Runs of a job that stay in the catalog at any age. */
const LATEST_RUNS = 50

const seen: { sessions?: SessionsService; tasks?: TaskService; db?: Db } = {}
const opener = definePlugin({
  name: 'opener',
  version: '1.0.0',
  requires: { sessions: { id: 'sessions@1' }, tasks: { id: 'tasks@1' } },
  service: async () =>
    class {
      constructor({ needs, db }: { needs: Record<string, unknown>; db: Db }) {
        seen.db = db
        seen.sessions = needs.sessions as SessionsService
        seen.tasks = needs.tasks as TaskService
      }
    },
}).surface({})

/** A kernel of this home with everything in it, some days ahead. */
function open(days: number) {
  const clock = { ...systemClock(), now: () => Date.now() + days * DAY_MS }
  const env = { SVC_HOME: home, HOME: home, PATH: process.env.PATH }
  return createKernel({ home, plugins: [...inTree, opener], env, clock })
}

const handlers = {
  /** Adds runs of jobs, half as many agents and skills each as `definitions`, and prompts to the sessions that are there. */
  async grow(runs: number, definitions: number): Promise<void> {
    for (let n = 0; n < definitions / 2; n++) {
      const name = `grown-${String(n).padStart(4, '0')}`
      write(['agents', name, 'AGENT.md'], `---\nname: ${name}\nprovider: claude\n---\nYou look after part ${n}.\n`)
      write(
        ['skills', name, 'SKILL.md'],
        `---\nname: ${name}\ndescription: How part ${n} is looked after\n---\nRead it.\n`,
      )
    }
    const kernel = await open(0)
    const ids: string[] = []
    for (let n = 0; n < JOBS; n++) {
      const schedule = { mode: 'every', interval: '1h' }
      const body = {
        name: `job ${n}`,
        scope: 'global',
        agent_name: 'grown-0000',
        prompt: 'Report.',
        enabled: false,
        schedule,
      }
      const reply = await kernel.inject({ method: 'POST', url: '/api/automation/jobs', body })
      if (reply.status >= 300) throw new Error(`no job: ${reply.status} ${reply.body}`)
      ids.push(JSON.parse(reply.body).job.id)
    }
    await kernel.close()
    const store = await openStore({ path: path.join(home, 'svc.db'), now: Date.now })
    const now = Date.now()
    await store.db.tx(t => {
      t.run(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO automation_run (id, job_id, status, attempt, fire_id, scheduled_at, started_at, ended_at, session_id, event)
         SELECT printf('run_%024x', i), ids.value, 'completed', 1, printf('fire_%024x', i), ?2 - (?1 - i) * 60000,
           ?2 - (?1 - i) * 60000, ?2 - (?1 - i) * 60000 + 5000, printf('ses_%016x', i), printf('evt_%016x', i)
         FROM n JOIN json_each(?3) ids ON ids.key = i % ?4`,
        [runs, now, JSON.stringify(ids), JOBS],
      )
      t.run(
        `INSERT INTO sessions_prompt (id, session_id, message_id, idempotency_key, digest, text, mode, source, status,
           turn_id, generation, reply, enqueued_at)
         SELECT printf('prq_%s%d', s.id, n.value), s.id, printf('msg_%s%d', s.id, n.value), printf('key-%s%d', s.id, n.value),
           'sha256:' || hex(randomblob(32)), '', 'queue', 'api', 'completed', printf('trn_%s%d', s.id, n.value), 1,
           json_object('id', printf('prq_%s%d', s.id, n.value), 'session_id', s.id, 'status', 'accepted', 'mode', 'queue'),
           s.created_at
         FROM sessions_session s, json_each(?) n`,
        [JSON.stringify([...Array(PROMPTS).keys()])],
      )
    })
    await store.close()
  },
  /** Opens the home so many days later and moves out what is old; entries that moved. */
  async pass(days: number): Promise<number> {
    const kernel = await open(days)
    const runs = () => Number(seen.db?.row('SELECT count(*) FROM automation_run')?.[0])
    const before = runs()
    const { archive, promptFiles } = seen.sessions?.context ?? {}
    const prompts = (await promptFiles?.sweep()) ?? 0
    const moved = ((await seen.tasks?.archive.sweep()) ?? 0) + prompts + ((await archive?.sweep()) ?? 0)
    // Runs move by themselves, beginning two minutes after the start.
    while (runs() > JOBS * LATEST_RUNS) await new Promise(resolve => setTimeout(resolve, 1000))
    const movedRuns = before - runs()
    await kernel.close()
    return moved + movedRuns
  },
}

function write(at: readonly string[], text: string): void {
  const file = path.join(home, ...at)
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, text)
}

export type GrownProcess = typeof handlers
answer(handlers)
