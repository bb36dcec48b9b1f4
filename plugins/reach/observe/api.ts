/** `svc/plugins/observe`: what an event says in one line, for those who list events themselves. */
export { isFailure, logEventOf } from './logs/wire.js'
