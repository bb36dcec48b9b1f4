/** `svc/plugins/observe`: the one-line form of events, for plugins that list events themselves. */
export { isFailure, logEventOf } from './logs/wire.js'
