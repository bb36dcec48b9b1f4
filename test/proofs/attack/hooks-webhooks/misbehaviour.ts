import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { processesWith, until } from '../../../e2e/installed.js'
import { type Json, PATIENCE, prompt, type Scene, type Strike, trigger } from './scene.js'

/** On hooks, and on triggers by themselves. */
export const misbehaviour: Readonly<Record<string, Strike>> = {
  'a hook that hangs': scene => broken(scene, 'sleep 600', 'failed', { timeout: '300ms' }),
  'a hook that floods': scene => broken(scene, `yes ${'x'.repeat(1000)} | head -c 200000000`, 'failed'),
  'a hook that floods its standard error': scene =>
    broken(scene, 'yes x | head -c 200000000 >&2; exit 1', 'failed', { timeout: '20s' }),
  'a hook that writes garbage': scene =>
    broken(scene, scene.random.of(['head -c 4000 /dev/urandom', 'echo "{"', 'echo "[1]"', 'echo nonsense']), 'failed'),
  'a hook that is gone': scene => broken(scene, undefined, 'failed'),
  'a hook that ends badly': scene => broken(scene, scene.random.of(['exit 3', 'kill -9 $$', 'kill -15 $$']), 'failed'),
  'a hook that stays and dies': scene => broken(scene, 'read line; exit 0', 'failed', { warm: true }),
  'a hook that stays and talks nonsense': scene =>
    broken(
      scene,
      scene.random.of([
        'yes nonsense',
        `yes '{"id":77,"patch":{}}'`,
        'tr -dc x < /dev/zero | head -c 9000000; sleep 9',
      ]),
      'failed',
      { warm: true, timeout: '5s' },
    ),
  'a hook that changes what it may not': scene =>
    broken(
      scene,
      `echo '${scene.random.of(['{"command":"rm"}', '{"decision":"allow"}', '{"message":7}', '{"__proto__":{"deny":false},"x":1}'])}'`,
      'rejected',
    ),
  'a hook that allows what is refused': async scene => {
    const command = program(scene, `echo '{"decision":"allow"}'`)
    return withHook(scene, { event: 'permission.request', mode: 'sync', command }, async () => {
      const toolCall = { toolCallId: 'c', kind: 'edit', title: 'e', locations: [{ path: '/etc/passwd' }] }
      const options = ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, kind, name: kind }))
      const { session, workspace, ask } = scene
      const made = await ask('POST', '/api/sessions', { workspace, agent_name: 'scripted', permissions: 'deny-all' })
      const id = made.body.session?.id ?? session
      const url = `/api/workspaces/${workspace}/sessions/${id}`
      const { turn } = await prompt(scene, id, `ask ${JSON.stringify({ toolCall, options })}`)
      const { events } = (await ask('GET', `${url}/events?turn_id=${turn}&limit=1000`)).body
      await ask('POST', `${url}/stop`)
      const text = JSON.stringify(events)
      return text.includes('"optionId":"allow_once"}') || text.includes('selected_option_id":"allow_once')
        ? `it was allowed: ${text.slice(0, 400)}`
        : undefined
    })
  },
  'a hook that sets itself off': async scene => {
    const { workspace, ask, at } = scene
    const bin = path.resolve(import.meta.dirname, '../../../../dist/bin/svc')
    // By their name: what an earlier strike has begun may go on making sessions meanwhile.
    const name = `again${scene.random.int(1e9)}`
    const make = `SVC_HOME='${at.home}' '${process.execPath}' '${bin}' session new --workspace ${workspace} --agent scripted --name ${name} >/dev/null 2>&1; exit 0`
    const command = program(scene, make)
    return withHook(scene, { event: 'session.pre_create', mode: 'sync', command, timeout: '60s' }, async () => {
      await ask('POST', '/api/sessions', { workspace, agent_name: 'scripted', name })
      const { sessions } = (await ask('GET', '/api/sessions?limit=1000')).body
      const made = sessions.filter((session: Json) => session.name === name).length
      return made === 3 ? undefined : `it made ${made} sessions, three deep`
    })
  },
  'a trigger that feeds itself': async scene => {
    const { ask, at, random } = scene
    // In a workspace of its own: what an earlier strike has started may still make sessions in the other one.
    const folder = path.join(at.folder, `own${random.int(1e9)}`)
    mkdirSync(folder)
    const workspace = (await ask('POST', '/api/workspaces', { root_dir: folder })).body.workspace.id as string
    const filter = { workspace_id: workspace, 'data.agent_name': 'scripted' }
    const { id } = await trigger(scene, { event: 'session.created', workspace_id: workspace, filter })
    await ask('POST', '/api/sessions', { workspace, agent_name: 'scripted' })
    const url = `/api/automation/triggers/${id}`
    const runs = async () => (await ask('GET', `${url}/runs`)).body.runs as Json[]
    await until(
      async () => (await runs()).find(run => run.metadata?.reason === 'trigger_depth'),
      PATIENCE,
      () => 'it is stopped by its depth',
    )
    await ask('DELETE', url)
    const fired = (await runs()).filter(({ status }) => status !== 'canceled').length
    return fired === 3 ? undefined : `it fired ${fired} times`
  },
}

/** Writes a program and returns its path; without a text one that is not there. */
function program({ at, random }: Scene, text: string | undefined): string {
  const file = path.join(at.folder, `program${random.int(1e9)}`)
  if (text !== undefined) writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  return file
}

/** Declares a hook while something is done. */
async function withHook(
  { ask, random }: Scene,
  declaration: object,
  work: (name: string) => Promise<string | undefined>,
): Promise<string | undefined> {
  const name = `h${random.int(1e9)}`
  const put = await ask('PUT', `/api/settings/hooks/${name}`, { declaration: { matcher: {}, ...declaration, name } })
  if (put.status !== 200) return `PUT hook: ${put.status} ${JSON.stringify(put.body)}`
  try {
    return await work(name)
  } finally {
    await ask('DELETE', `/api/settings/hooks/${name}`)
  }
}

/** A hook that does not do its part: its run says so, a prompt goes on without it, and is refused where it is required. */
async function broken(
  scene: Scene,
  text: string | undefined,
  outcome: string,
  more: object = {},
): Promise<string | undefined> {
  const { ask, workspace, session, at, random } = scene
  const required = random() < 0.5
  const command = program(scene, text)
  const declaration = { event: 'input.pre_submit', mode: 'sync', timeout: '20s', ...more, command, required }
  return withHook(scene, declaration, async name => {
    const { refused } = await prompt(scene, session, 'say hello')
    const { runs } = (await ask('GET', `/api/workspaces/${workspace}/hooks/runs?session=${session}&last=50`)).body
    const run = runs.findLast(({ hook_name }: Json) => hook_name === name)
    if (run?.outcome !== outcome) return `its run is ${JSON.stringify(run)?.slice(0, 300)}, not ${outcome}`
    if (required ? refused !== 'hook_denied' : refused !== undefined)
      return `required ${required}, and the prompt was ${refused ?? 'taken'}`
    await ask('DELETE', `/api/settings/hooks/${name}`)
    await until(
      () => (processesWith(`SVC_HOOK_NAME=${name}`).length === 0 ? true : undefined),
      PATIENCE,
      () => `nothing of ${command} runs any more${at.logTail()}`,
    )
    return undefined
  })
}
