// Sessions that keep nothing and end at once: what is measured is what comes before them.
import { definePlugin, type PluginKernel } from '../../kernel/plugin.js'
import {
  type CreateSession,
  points,
  type SessionInfo,
  Sessions,
  type SessionsApi,
} from '../../plugins/work/sessions/api.js'

class NoSessions implements SessionsApi {
  readonly points: SessionsApi['points']
  noteHookRun(): void {}
  declare readonly uses: SessionsApi['uses']
  declare readonly past: SessionsApi['past']
  guard = async () => {}
  unguarded = () => []
  interrupt = async () => {}
  agentFor = () => 'general'
  readonly stopped
  readonly permission
  readonly prepare
  readonly creating
  readonly launching
  readonly healthUpdated
  #made = 0

  constructor(private readonly kernel: PluginKernel) {
    const own = kernel.hooks.of(points)
    this.points = { ...own, journal: () => Promise.reject(new Error('not used here')) }
    this.healthUpdated = own.healthUpdated
    this.stopped = own.stopped
    this.permission = own.permission
    this.creating = own.creating
    this.launching = own.launching
    this.prepare = own.prepare
  }

  get = () => undefined
  lookup = async () => undefined
  shown = () => undefined
  unstopped = () => []
  ask = () => undefined
  resumable = () => []
  worktrees = {} as never
  whileIdle = () => Promise.reject(new Error('not used here'))
  healthOf = () => undefined
  answerTo = () => undefined
  inbox = () => []
  finished = () => []
  isWatched = () => false

  async create({ workspaceId, agentName = '', name = '' }: CreateSession): Promise<SessionInfo> {
    const at = this.kernel.clock.now()
    const id = `ses_${this.#made++}`
    return {
      id,
      name,
      type: 'user',
      agentName,
      workspaceId,
      state: 'active',
      provider: 'local',
      createdAt: at,
      updatedAt: at,
    }
  }

  run = async () => ({ status: 'completed', turnId: 'trn_1', stopReason: 'end_turn' }) as const
  queue = async () => ({ turnId: 'trn_1', from: 1 })
  follow = async () => ({ events: [], next: 1, last: 0, isOver: true })
  attach = async () => 'att_1'
  answer = async () => true
  continueQueue = async () => {}
  requests = () => []
  clarify = () => {}
  begin = async () => ({ turnId: 'trn_1', outcome: this.run() })
  stop = async () => {}
  retire = async () => 'removed' as const
}

export const sessions = definePlugin({
  name: 'sessions',
  version: '1.0.0',
  provides: Sessions,
  service: async () => NoSessions,
}).surface({})
