import { Host, type KernelOf } from '../../../kernel/plugin.js'
import { Events } from '../../platform/events/api.js'
import { Ownership } from '../../platform/ownership/api.js'
import { Daemon } from '../daemon/api.js'

/** APIs that the plugin requires. */
export const needs = { host: Host, daemon: Daemon, events: Events, ownership: Ownership }
export type K = KernelOf<typeof needs>
