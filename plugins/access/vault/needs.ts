import type { KernelOf } from '../../../kernel/plugin.js'
import { Events } from '../../platform/events/api.js'

/** APIs that the plugin requires. */
export const needs = { events: Events }
export type K = KernelOf<typeof needs>
