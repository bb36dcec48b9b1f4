// proof, timeout: 120s: from a session of a job that fired back to who created the job, on a real daemon
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { AuditReply, WhyReply } from '../../schemas/daemon/audit.js'
import { Installed, until } from './installed.js'

const test = suite<{ at: Installed }>('why')
test.before.each(context => {
  context.at = new Installed()
})
test.after.each(({ at }) => at.remove())

const WITHIN_MS = 60_000

test('a job fires, its session asks and gets an answer, and why traces each to svc job create', async ({ at }) => {
  await at.svc('daemon', 'start')
  await at.svc('workspace', 'add', at.makeRepository('repository'))
  await at.svc('job', 'create', 'tick', '--every', '2s', '--prompt', 'Report', '--agent', 'report', '--scope', 'global')
  const run = await until(
    async () => {
      const { runs } = await at.json<{ runs: { id: string; session_id?: string }[] }>('automation', 'runs', 'list')
      return runs.find(({ session_id }) => session_id !== undefined)
    },
    WITHIN_MS,
    () => `a run with a session${at.logTail()}`,
  )
  const session = run.session_id as string
  await until(
    async () => (JSON.parse(await at.svc('inbox', '--json')).items?.length > 0 ? true : undefined),
    WITHIN_MS,
    () => `a question of ${session}${at.logTail()}`,
  )
  await at.svc('session', 'approve', session, '--yes')

  const { entries } = await at.json<AuditReply>('audit', 'list', '--action', 'permission')
  assert.equal(
    entries.map(({ action, subject, actor, request }) => [action, subject, actor.id, request]),
    [['permission.answered', session, 'operator', 'POST /api/workspaces/{workspace_id}/sessions/{session_id}/approve']],
  )
  const made = (await at.json<AuditReply>('audit', 'list', '--subject', 'automation.job')).entries.at(-1)
  const created = JSON.parse((await at.request('socket', 'GET', '/api/audit?action=session')).text) as AuditReply
  assert.is(created.entries.length, 0, 'a session is an outcome, not a change of the control plane')

  const ofRun = await at.json<WhyReply>('why', run.id)
  assert.equal([ofRun.complete, ofRun.end], [true, 'a request'])
  assert.equal(
    ofRun.chain.slice(-2).map(({ id, what, origin }) => [id, what, origin]),
    [
      [made?.event, 'record.put: version 1', 'cli'],
      [made?.cause, 'POST /api/automation/jobs', 'cli'],
    ],
  )
  const answered = await at.json<WhyReply>('why', entries[0]?.event as string)
  assert.is(answered.chain.at(-1)?.what, 'POST /api/workspaces/{workspace_id}/sessions/{session_id}/approve')
  await at.svc('session', 'stop', session)
  const ofJob = await at.json<WhyReply>('why', `${made?.subject}@1`)
  assert.equal(ofJob.chain.at(-1), ofRun.chain.at(-1))

  for (const line of (await at.run(['audit', 'list'], undefined, { COLUMNS: '80' })).stdout.split('\n'))
    assert.ok(line.length <= 80, line)
  for (const line of (await at.run(['why', run.id], undefined, { COLUMNS: '80' })).stdout.split('\n'))
    assert.ok(line.length <= 80, line)
  assert.match(await at.svc('audit', 'verify'), /entries verified \(1 to \d+\), none altered/)
  // Another process of the daemon goes on with the same chain, and knows what the one before did.
  await at.svc('daemon', 'restart')
  assert.match(await at.svc('audit', 'verify'), /none altered/)
  assert.equal((await at.json<WhyReply>('why', run.id)).chain.slice(-2), ofRun.chain.slice(-2))
  assert.ok((await at.json<AuditReply>('audit', 'list', '--action', 'daemon.restart')).entries.length === 1)
})

test.run()
