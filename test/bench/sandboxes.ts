import { realpathSync } from 'node:fs'
import type { AcpAgent } from './acp-agent.js'
import type { Script } from './acp-script.js'
import { Child } from './child.js'
import type { Context } from './context.js'
import { startDaemon } from './daemon.js'
import { inTurn, median, ms, ratioOf } from './measure.js'
import { call, homeWith } from './session-home.js'
import type { StreamLoad } from './stream-load.js'

const ONE: Script = { kind: 'text', updates: 1, bytes: 100, gapMs: 0 }

/** The first turn of a session, whose process starts with it: in a sandbox beside one without. */
export async function benchSandboxes(context: Context): Promise<void> {
  const { program, temp, report, quick } = context
  const rounds = quick ? 5 : 20
  const agent = Child.start<AcpAgent>(program('acp-agent'))
  const home = homeWith(temp, 'sessions-sandboxed', await agent.call('listen'))
  const daemon = await startDaemon(context, home)
  const load = Child.start<StreamLoad>(program('stream-load'))
  const { workspace } = await call(home.socket, 'POST', '/api/workspaces/resolve', { path: realpathSync(temp) })
  const firstTurn = (sandbox: string) => async () => {
    const body = { workspace: workspace.id, agent_name: 'scripted', sandbox }
    const { session } = await call(home.socket, 'POST', '/api/sessions', body)
    const at = `/api/workspaces/${workspace.id}/sessions/${session.id}`
    const [took = Number.NaN] = await load.call('turns', home.socket, at, 0, 1, ONE)
    await call(home.socket, 'POST', `${at}/stop`)
    return took
  }
  const [inside, outside] = [firstTurn('default'), firstTurn('none')]
  // The first one tries whether sandboxes work at all.
  const obstacle = await inside().then(
    () => undefined,
    (error: Error) => error.message,
  )
  if (obstacle === undefined) {
    await outside()
    const [a = [], b = []] = await inTurn(rounds, [inside, outside])
    const more = median(a.map((time, i) => time - (b[i] as number)))
    report.section(`Sandboxes${quick ? ', coarse' : ''}`, [
      {
        what: `first turn of a session in a sandbox, ${ms(more)} more`,
        ours: ms(median(a)),
        baseline: `without: ${ms(median(b))}`,
        ratio: ratioOf(a, b),
        value: more,
        target: { atMost: 30, unit: 'ms' },
      },
    ])
  } else report.skip('sandboxes', obstacle)
  await load.kill()
  await daemon.stop()
  await agent.kill()
}
