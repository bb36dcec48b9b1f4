import { Faults, type KernelOf } from '../../../kernel/plugin.js'
import { Events } from '../events/api.js'

export const needs = { report: Faults, events: Events }
export type K = KernelOf<typeof needs>
