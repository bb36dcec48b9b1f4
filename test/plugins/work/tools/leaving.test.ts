// timeout: 120s
import { mkdir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { SessionInfo } from '../../../../plugins/work/sessions/api.js'
import { judgeLeaving } from '../../../../plugins/work/tools/policy.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { type Caller, openScene, type Scene, until, type Wire } from './scene.js'

interface Context {
  readonly scene: Scene
  readonly there: { readonly id: string; readonly root: string; readonly session: string }
}
const test = suite<Context>('agent requests for another workspace')
const LIST = 'service__session_list'

test.before(async context => {
  const scene = await openScene()
  const root = path.join(await realpath(await temporaryFolder('root')), 'far')
  await mkdir(root)
  const { workspace } = (await scene.operator('POST', '/api/workspaces', { root_dir: root })).body
  await scene.agent('far')
  const made = await scene.operator('POST', '/api/sessions', {
    ...{ workspace: workspace.id, agent_name: 'far', sandbox: 'none' },
  })
  Object.assign(context, { scene, there: { id: workspace.id, root, session: made.body.session.id } })
})
test.after(({ scene }) => scene.close())

const outcome = ({ status, body }: { status: number; body: Wire }) => [status, body.error?.code ?? body.status]
const sessionsIn = ({ body }: { body: Wire }) => JSON.stringify(body.result.structured)
const answered = (agent: Caller, id: string) =>
  until(async () => {
    const { body } = await agent.ask('GET', `/api/tools/approvals/${id}`)
    return !['pending', 'running'].includes(body.execution_status) && body.execution_status ? body : undefined
  }, 'the end of the call')

test('a request for another workspace runs there under approve-all, by id, name or folder', async ({
  scene,
  there,
}) => {
  const agent = await scene.agent('all', { permissions: 'approve-all' })
  for (const workspace of [there.id, 'far', there.root]) {
    const reply = await agent.call(LIST, { workspace })
    assert.equal(outcome(reply), [200, 'completed'], workspace)
    assert.match(sessionsIn(reply), there.session)
    assert.not.match(sessionsIn(reply), agent.id)
  }
  assert.match(sessionsIn(await agent.call(LIST)), agent.id)
  const none = await agent.call(LIST, { workspace: 'ws_00000000000000ff' })
  assert.equal(outcome(none), [403, 'tool_denied'])
  const own = await agent.call(LIST, { workspace: path.basename(scene.world.root) })
  assert.match(sessionsIn(own), agent.id, 'its own by its name')
  const info = await agent.call('service__session_info', { workspace_id: there.id, session_id: agent.id })
  assert.is(info.status, 403, 'its session is not there')
})

test('a request for another workspace waits for a user under approve-reads, whatever was always allowed', async ({
  scene,
  there,
}) => {
  const agent = await scene.agent('reads')
  const grant = { decision: 'allow', scope: 'tool', tool_id: LIST }
  const url = `/api/tool-approval-grants?workspace_id=${scene.world.workspaceId}`
  assert.is((await scene.operator('PUT', url, grant)).status, 200)
  assert.equal(outcome(await agent.call(LIST)), [200, 'completed'])
  for (const workspace of [path.basename(scene.world.root), scene.world.root])
    assert.equal(outcome(await agent.call(LIST, { workspace })), [200, 'completed'], `its own one as ${workspace}`)
  const reply = await agent.call(LIST, { workspace: there.id })
  assert.equal(outcome(reply), [202, 'tool_approval_required'])
  await scene.decide('allow')
  const { execution_status, result } = await answered(agent, reply.body.error.details.approval_id)
  assert.is(execution_status, 'completed')
  assert.match(JSON.stringify(result), there.session)
  assert.equal(outcome(await agent.call(LIST, { workspace: there.id })), [202, 'tool_approval_required'])
  await scene.decide('reject')
})

test('a request for another workspace is refused under deny-all', async ({ scene, there }) => {
  const agent = await scene.agent('none', { permissions: 'deny-all' })
  assert.equal(outcome(await agent.call(LIST, { workspace: there.id })), [403, 'tool_denied'])
})

test('a request for another workspace is refused in a sandbox and by a restricting parent, in every mode', () => {
  const info = { workspaceId: 'ws_1' } as SessionInfo
  const confinement = { kind: 'sandbox', backend: 'bubblewrap', profile: 'default', network: 'host' } as const
  const lineage = { permission_policy: {} } as SessionInfo['lineage']
  const judged = (mode: 'approve-all' | 'approve-reads' | 'deny-all', more: Partial<SessionInfo>) => {
    const session = { info: { ...info, ...more }, definition: undefined, mode, allowed: undefined, rights: undefined }
    try {
      return judgeLeaving(LIST, session)
    } catch {
      return 'refused'
    }
  }
  for (const mode of ['approve-all', 'approve-reads', 'deny-all'] as const)
    for (const more of [{ confinement }, { lineage }]) assert.is(judged(mode, more as Partial<SessionInfo>), 'refused')
  assert.equal(
    (['approve-all', 'approve-reads', 'deny-all'] as const).map(mode => judged(mode, {})),
    [false, true, 'refused'],
  )
})

test.run()
