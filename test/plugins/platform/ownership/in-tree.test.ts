import { mkdir, realpath, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Plugin } from '../../../../kernel/plugin.js'
import { tablePrefix } from '../../../../kernel/store/statement-check.js'
import { Workspaces } from '../../../../plugins/desk/workspaces/api.js'
import { daemon, inTree, trust, workspaces } from '../../../../plugins/index.js'
import { eventually } from '../../../fixtures/session-world.js'
import { openCatalog } from '../../../harness/catalog.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'
import { service } from './scene.js'

/** Columns with the id of a workspace, a session, a provider or an MCP server whose rows stay when that ends, and why. */
const STAYS: Readonly<Record<string, string>> = {
  'automation_left_session.session_id': 'its plugin removes the session, and then the row',
  'automation_run.session_id': 'history of a job, which outlives its sessions',
  'bridges_delivery.session_id': 'messages are kept for a week, so that none is sent twice',
  'bridges_inbox.session_id': 'events are kept for a day, so that none is asked twice',
  'bridges_route.session_id': 'the conversation goes on in a new session',
  'bridges_route.workspace_id': 'goes with its bridge, which is a record of the workspace',
  'console_push.session_id': 'a session of the console, whose end removes it',
  'heartbeats_state.workspace_id': 'goes with its session',
  'heartbeats_wake.session_id': 'decisions are kept for as long as the configuration says',
  'heartbeats_wake.workspace_id': 'as its session',
  'hooks_run.workspace_id': 'goes with its session',
  'mcp_farewell.workspace_id': 'a login that is still to be revoked',
  'mcp_seen.binding': 'its plugin looks for servers that are gone from their files',
  'mcp_login.binding': 'as above: the login is revoked first',
  'models_model.provider': 'goes with its source',
  'network_nats_taken.workspace_id': 'its origin is told what became of it; goes a week later',
  'network_message.session_id': 'what was said stays with its channel',
  'network_participation.session_id': 'a run keeps in which channel it was; goes with its workspace',
  'network_participant.session_id': 'who took part in a conversation stays known',
  'network_wake.session_id': 'what a wake cost stays with its workspace',
  'notifications_notice.session_id': 'goes with its workspace: what an agent said is read after its session',
  'notifications_subscription.workspace_id': 'goes with its task',
  'observe_day.workspace_id': 'what happened is counted for 90 days',
  'observe_hour.workspace_id': 'what happened is counted for 90 days',
  'sandboxes_guard.session_id': 'of processes that may still run: released when they have ended',
  'self_service_child.parent_id': 'its session lives on and is ended in time',
  'sessions_attachment.session_id': 'goes in the transaction that removes the session',
  'sessions_briefing.session_id': 'goes in the transaction that removes the session',
  'sessions_prompt.session_id': 'goes in the transaction that removes the session',
  'sessions_session.provider': 'the session can be moved to another provider',
  'sessions_usage_day.provider': 'what was used is counted for good',
  'sessions_usage_day.session_id': 'what was used is counted for good',
  'sessions_usage_day.workspace_id': 'what was used is counted for good',
  'tasks_hold.session_id': 'goes with its run',
  'tasks_review.session_id': 'history of a task',
  'tasks_run.session_id': 'history of a task',
  'tasks_task.workspace_id': 'a task is the record of work, and outlives its workspace',
  'tasks_wake.session_id': 'is handed over or given up by the plugin',
  'tasks_worker.session_id': 'history of a run',
  'tools_artifact.session_id': 'goes with its workspace: other sessions may read it',
}
/** Tables with so few rows that looking through them costs nothing. */
const SMALL = new Set([
  ...['automation_place', 'extensions_binding', 'extensions_dev', 'extensions_dev_network', 'mcp_login', 'mcp_seen'],
  ...['models_source', 'sidecars_refresh'],
])

const COLUMNS: readonly string[] = ['workspace', 'workspace_id', 'session_id', 'parent_id', 'provider', 'binding']

const owned = inTree.flatMap(({ name, surface }) =>
  (surface.owned ?? []).flatMap(entry =>
    'table' in entry ? [{ name, at: `${entry.table}.${entry.column}`, ...entry }] : [],
  ),
)

test('each row of a workspace, session, provider or server is deleted with it, or stays for a reason', async () => {
  const store = await openCatalog(inTree)
  const columns = store.db
    .rows(
      `SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'
       AND c.name IN (${COLUMNS.map(name => `'${name}'`)}) ORDER BY 1`,
    )
    .map(([column]) => `${column}`)
    .filter(column => column !== 'tasks_review.parent_id')
  // Rows of a task, or of something that a column only sometimes names, are owned beside these.
  const named = owned.filter(({ column }) => COLUMNS.includes(column))
  const told = [...named.map(({ at }) => at), ...Object.keys(STAYS)]
  assert.equal(told.toSorted(), columns, 'a new column is owned, or named above')
  for (const { name, table, column, at } of owned) {
    assert.ok(table.startsWith(tablePrefix(name)), at)
    assert.not.throws(() => store.db.rows(`SELECT rowid FROM ${table} LIMIT 1`), `${table} is swept by its rowid`)
    if (SMALL.has(table)) continue
    const indexes = store.db.rows(
      `SELECT 1 FROM pragma_index_list(?) l, pragma_index_info(l.name) i WHERE i.seqno = 0 AND i.name = ?`,
      [table, column],
    )
    assert.ok(indexes.length > 0, `${at} is found by an index`)
  }
  await store.close()
})

test('trust in a workspace removed while the plugin is disabled is deleted when it is enabled again', async () => {
  const home = await temporaryFolder('home')
  const root = await realpath(await temporaryFolder('root'))
  await writeFile(path.join(root, 'CLAUDE.md'), 'hello')
  await mkdir(path.join(root, '.svc'))
  await writeFile(path.join(root, '.svc', 'mcp.json'), '{"mcpServers":{"a":{"command":"true"}}}')
  const start = async (plugins: readonly Plugin[]) => {
    const reader = service(Workspaces, 'acme.rows')
    const s = await boot({ home, plugins: [daemon, workspaces, reader.plugin, ...plugins] })
    const rows = () => reader.kernel().db.rows('SELECT workspace_id FROM trust_workspace').length
    const waiting = () => reader.kernel().db.rows('SELECT id FROM ownership_tombstone').length
    return { ...s, rows, waiting }
  }
  const enabled = await start([trust])
  const { id } = (await enabled.request('POST', '/api/workspaces', { root_dir: root })).body.workspace
  const { digest } = (await enabled.request('GET', `/api/workspaces/${id}/trust`)).body.trust
  assert.is((await enabled.request('PUT', `/api/workspaces/${id}/trust`, { digest })).status, 200)
  assert.is(enabled.rows(), 1)
  await enabled.close()

  const disabled = await start([])
  assert.is((await disabled.request('DELETE', `/api/workspaces/${id}`)).status, 204)
  assert.equal([disabled.rows(), disabled.waiting()], [1, 1])
  await disabled.close()

  const again = await start([trust])
  await eventually(async () => again.waiting() === 0, 'the tombstone is seen to')
  assert.is(again.rows(), 0)
  await again.close()
  for (const folder of [home, root]) await rm(folder, { recursive: true })
})

test.run()
