import http from 'node:http'
import type { StartedDaemon } from '../../../testing/daemon.js'

export interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: what a daemon answers is looked at member by member.
  readonly body: any
}

/** Sessions that claim runs, for which the operator speaks; they live as long as the daemon that made them. */
export class Claimants {
  /** A connection for each session: a million claims are not a million connections. */
  readonly #agents = new Map<string, http.Agent>()

  private constructor(
    private readonly daemon: StartedDaemon,
    readonly sessions: readonly string[],
  ) {
    for (const session of sessions) this.#agents.set(session, new http.Agent({ keepAlive: true, maxSockets: 1 }))
  }

  static async of(daemon: StartedDaemon, workspace: string, count: number): Promise<Claimants> {
    const sessions: string[] = []
    while (sessions.length < count) {
      const made = await daemon.request('POST', '/api/sessions', { workspace, agent_name: 'claimant' })
      if (made.status !== 201) throw new Error(`a session: ${made.status} ${JSON.stringify(made.body)}`)
      sessions.push(made.body.session.id)
    }
    return new Claimants(daemon, sessions)
  }

  /** What a session asks of its tasks: `claim-next`, or `<run>/complete`. Rejects when the daemon is gone. */
  ask(session: string, what: string, body: object = {}, again = true): Promise<Answer> {
    const text = JSON.stringify(body)
    const headers = {
      authorization: `Bearer ${this.daemon.token}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      'x-service-session-id': session,
      'x-service-agent': 'claimant',
    }
    const socketPath = `${this.daemon.home}/daemon.sock`
    const agent = this.#agents.get(session)
    return new Promise<Answer>((resolve, reject) => {
      const options = { socketPath, method: 'POST', path: `/api/agent/tasks/${what}`, headers, agent }
      const request = http.request(options, response => {
        let answer = ''
        response.setEncoding('utf8')
        response.on('data', chunk => {
          answer += chunk
        })
        response.once('error', reject)
        response.once('end', () =>
          resolve({ status: response.statusCode ?? 0, body: answer === '' ? undefined : JSON.parse(answer) }),
        )
      })
      request.once('error', (error: NodeJS.ErrnoException) => {
        // The daemon closed a connection that had waited for long, and read nothing of this.
        const isIdle = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
        if (isIdle && again) resolve(this.ask(session, what, body, false))
        else reject(error)
      })
      request.end(text)
    })
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy()
  }
}

/** Queues a run of a task of its own; its id. */
export async function queueRun(daemon: StartedDaemon, title: string): Promise<string> {
  const made = await daemon.request('POST', '/api/tasks', { title, scope: 'global', max_attempts: 10 })
  const { body } = await daemon.request('POST', `/api/tasks/${made.body.task.id}/start`, {})
  return body.run.id
}

/** Does something so many times, some at once. */
export async function many<T>(count: number, atOnce: number, work: (n: number) => Promise<T>): Promise<T[]> {
  const done: T[] = []
  let next = 0
  const lane = async () => {
    for (let n = next++; n < count; n = next++) done[n] = await work(n)
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
  return done
}
