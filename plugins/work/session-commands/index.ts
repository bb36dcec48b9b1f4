import { definePlugin } from '../../../kernel/plugin.js'
import { commandList } from './command-list.js'

/** The commands that talk with sessions in a terminal. They use the routes of the daemon like any other client. */
export default definePlugin({ name: 'session-commands', version: '0.1.0' }).surface({ commands: commandList })
