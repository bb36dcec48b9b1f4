import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { performance } from 'node:perf_hooks'
import { processesWith } from '../../e2e/installed.js'
import { openWorld } from '../../fixtures/session-world.js'

/** Milliseconds that a shutdown has. */
const SHUTDOWN_MS = 10_000
const AT_ONCE = 20

/** The smallest agent there is, so that many fit on a machine; it heeds neither the end of its input nor SIGTERM. */
const DEAF_AGENT = `trap '' TERM
while IFS= read -r line; do
  id=\${line#*'"id":'}; id=\${id%%[,\\}]*}
  case $line in
    *'"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *session/new*) result='{"sessionId":"s"}' ;;
    *session/prompt*) result='{"stopReason":"end_turn"}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\\n' "$id" "$result"
done
exec sleep 1000
`

/** Stops a daemon with so many agents that do not want to end, and so many sessions that have none yet; says what is wrong. */
export async function proveShutdown(agents: number, unused: number): Promise<string[]> {
  const startup = { initialize_timeout: '5m', new_session_timeout: '5m' }
  const world = await openWorld({ config: { limits: { max_concurrent_agents: 1000 }, session: { startup } } })
  try {
    const script = path.join(world.root, 'agent.sh')
    await writeFile(script, DEAF_AGENT)
    await world.agent('deaf', { command: `bash ${script}` })
    const inTurn = async (count: number, work: () => Promise<unknown>) => {
      for (let left = count; left > 0; left -= AT_ONCE) {
        await Promise.all(Array.from({ length: Math.min(AT_ONCE, left) }, work))
      }
    }
    await inTurn(agents, async () => world.prompt((await world.session('deaf')).at, 'x'))
    await inTurn(unused, () => world.session('deaf'))
    const startedAt = performance.now()
    await world.kernel.close()
    const elapsed = performance.now() - startedAt
    console.log(
      `${agents} agents that do not want to end and ${unused} unused sessions: ${(elapsed / 1000).toFixed(1)} s`,
    )
    const left = processesWith(`SVC_HOME=${world.home}`)
    await world.restart()
    const { total } = (await world.kernel.request('GET', '/api/sessions?state=stopped&limit=1')).body.page
    return [
      ...(elapsed > SHUTDOWN_MS ? [`the shutdown took ${Math.round(elapsed)} ms`] : []),
      ...(left.length > 0 ? [`processes are left: ${left.join(', ')}`] : []),
      ...(total === agents + unused ? [] : [`${total} sessions are stopped`]),
    ]
  } finally {
    await world.close()
  }
}
