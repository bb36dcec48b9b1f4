export { runBuild, runDev, runInit, runPublish, runTest, runValidate } from './authoring/commands.js'
export { runLogs } from './authoring/logs.js'
export { runInstall, runRemove, runUpdate } from './install/commands.js'
