import type { Command } from '../../kernel/plugin.js'
export const cliCommands: readonly Command[] = []
