export { runInstall, runRemove, runUpdate } from './install/commands.js'
