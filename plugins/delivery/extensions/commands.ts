export { runBuild, runDev, runInit, runPublish, runTest, runValidate } from './authoring/commands.js'
export { runLogs } from './authoring/logs.js'
