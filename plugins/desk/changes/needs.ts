import { Host, type KernelOf, Requests } from '../../../kernel/plugin.js'
import { Events } from '../../platform/events/api.js'

/** APIs that the plugin requires. */
export const needs = { request: Requests, host: Host, events: Events }
export type K = KernelOf<typeof needs>
