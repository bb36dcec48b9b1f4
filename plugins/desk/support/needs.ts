import { Host, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Providers } from '../../agents/providers/api.js'
import { Daemon } from '../daemon/api.js'

/** APIs that the plugin requires. Without providers, the bundle has no information about agent programs. */
export const needs = { host: Host, daemon: Daemon, providers: maybe(Providers) }
export type K = KernelOf<typeof needs>
