import { Callers } from '../../../kernel/platform.js'
import { Host, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Tcp } from '../../platform/tcp/api.js'

/** APIs that the plugin requires. */
export const needs = { callers: Callers, host: Host, tcp: maybe(Tcp) }
export type K = KernelOf<typeof needs>
