import http from 'node:http'
import { type Queue, times, WORK } from './queue.js'

const FILLERS = 16

interface Post {
  readonly socketPath: string
  readonly path: string
  readonly body: string
  readonly agent?: http.Agent | undefined
  /** For which the operator, whose token this is, speaks. */
  readonly session?: string | undefined
  readonly token?: string
}

/** Text of the reply; throws unless it has one. */
function post({ session, token, body, ...where }: Post): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(session && {
        authorization: `Bearer ${token}`,
        'x-service-session-id': session,
        'x-service-agent': 'claimant',
      }),
    }
    const request = http.request({ ...where, method: 'POST', headers }, response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', chunk => {
        text += chunk
      })
      response.on('end', () => {
        const { statusCode = 500 } = response
        if (statusCode < 300 && statusCode !== 204) resolve(text)
        else reject(new Error(`${where.path}: ${statusCode} ${text}`))
      })
    })
    request.once('error', reject)
    request.end(body)
  })
}

/** The daemon behind its socket; each claimant is a session of its own, for which the operator speaks. */
export function svcQueue(socketPath: string, token: string, sessions: readonly string[]): Queue {
  const most = Math.max(FILLERS, sessions.length)
  const agents = Array.from({ length: most }, () => new http.Agent({ keepAlive: true, maxSockets: 1 }))
  const send = (lane: number, path: string, body: string, session?: string) =>
    post({ socketPath, path, body, agent: agents[lane], session, token })
  const claimed = new Map<number, string>()
  const task = JSON.stringify({ title: WORK, scope: 'global' })
  return {
    fill: count =>
      times(count, FILLERS, async n => {
        const { id } = JSON.parse(await send(n, '/api/tasks', task)).task
        await send(n, `/api/tasks/${id}/start`, '{}')
      }),
    cycle: async n => {
      const session = sessions[n]
      const { id } = JSON.parse(await send(n, '/api/agent/tasks/claim-next', '{}', session)).claim.run
      await send(n, `/api/agent/tasks/${id}/heartbeat`, '{}', session)
      await send(n, `/api/agent/tasks/${id}/complete`, '{}', session)
    },
    next: async n => {
      const session = sessions[n]
      const held = claimed.get(n)
      const reply =
        held === undefined
          ? JSON.parse(await send(n, '/api/agent/tasks/claim-next', '{}', session)).claim
          : JSON.parse(await send(n, `/api/agent/tasks/${held}/complete`, '{"next":{}}', session)).next
      if (!reply) throw new Error('there is nothing to claim')
      claimed.set(n, reply.run.id)
    },
    close: async () => {
      for (const agent of agents) agent.destroy()
    },
  }
}

/** So many sessions of the agent `claimant`, in a workspace of that folder. */
export async function openSessions(socketPath: string, root: string, count: number): Promise<string[]> {
  const ask = async (path: string, body: object) =>
    JSON.parse(await post({ socketPath, path, body: JSON.stringify(body) }))
  const { workspace } = await ask('/api/workspaces', { root_dir: root, name: 'work' })
  const sessions: string[] = []
  while (sessions.length < count)
    sessions.push((await ask('/api/sessions', { workspace: workspace.id, agent_name: 'claimant' })).session.id)
  return sessions
}
