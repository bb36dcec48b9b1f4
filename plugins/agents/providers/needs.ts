import { type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Vault } from '../../access/vault/api.js'
import { Daemon } from '../../desk/daemon/api.js'
import { Events } from '../../platform/events/api.js'
import { Ownership } from '../../platform/ownership/api.js'
import { Processes } from '../../platform/processes/api.js'
import { Sessions } from '../../work/sessions/api.js'

/** Dependencies of the plugin. */
export const needs = {
  daemon: Daemon,
  processes: Processes,
  vault: maybe(Vault),
  ownership: Ownership,
  events: Events,
  sessions: maybe(Sessions),
}
export type K = KernelOf<typeof needs>
