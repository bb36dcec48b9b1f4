import { Host, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Trust } from '../../access/trust/api.js'
import { Agents } from '../../agents/agents/api.js'
import { Providers } from '../../agents/providers/api.js'
import { Extensions } from '../../delivery/extensions/api.js'
import { Configuration } from '../../platform/configuration/api.js'
import { Events } from '../../platform/events/api.js'
import { Files } from '../../platform/files/api.js'
import { Restart } from '../../platform/restart/api.js'
import { Network } from '../../reach/network/api.js'
import { Hooks } from '../../work/hooks/api.js'
import { Daemon } from '../daemon/api.js'
import { Workspaces } from '../workspaces/api.js'

/** APIs that the plugin requires. */
export const needs = {
  configuration: Configuration,
  daemon: Daemon,
  events: Events,
  host: Host,
  workspaces: Workspaces,
  files: Files,
  agents: maybe(Agents),
  extensions: maybe(Extensions),
  network: maybe(Network),
  providers: maybe(Providers),
  hooks: maybe(Hooks),
  trust: maybe(Trust),
  restart: maybe(Restart),
}
export type K = KernelOf<typeof needs>
