import { type KernelOf, maybe, Requests, Settings } from '../../kernel/plugin.js'
import { Agents } from '../agents/api.js'
import { Events } from '../events/api.js'
import { Hooks } from '../hooks/api.js'
import { Sessions } from '../sessions/api.js'
import { Tools } from '../tools/api.js'
import { Workspaces } from '../workspaces/api.js'

/** What the plugin requires. */
export const needs = {
  agents: maybe(Agents),
  events: Events,
  request: Requests,
  hooks: maybe(Hooks),
  settings: Settings,
  sessions: maybe(Sessions),
  tools: maybe(Tools),
  workspaces: Workspaces,
}
export type K = KernelOf<typeof needs>
