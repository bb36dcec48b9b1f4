export { runLogEvents } from './cli/log-events.js'
export { runOverview } from './cli/show-overview.js'
export { runTop } from './cli/top.js'
