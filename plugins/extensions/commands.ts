export { runBuild, runDev, runInit, runTest, runValidate } from './authoring/commands.js'
export { runInstall, runRemove, runUpdate } from './install/commands.js'
