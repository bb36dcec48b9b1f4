import type { KernelOf } from '../../../kernel/plugin.js'
import { Configuration } from '../configuration/api.js'
import { Events } from '../events/api.js'

export const needs = { events: Events, configuration: Configuration }
export type K = KernelOf<typeof needs>
