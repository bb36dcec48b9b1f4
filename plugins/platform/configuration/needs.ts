import { SettingValues } from '../../../kernel/platform.js'
import { Faults, Host, type KernelOf } from '../../../kernel/plugin.js'

export const needs = { values: SettingValues, report: Faults, host: Host }
export type K = KernelOf<typeof needs>
