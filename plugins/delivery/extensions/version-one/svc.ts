/** `svc` for an extension of `apiVersion = 1`, which also had everything of `svc/plugin`. */
export * from '../../../../kernel/index.js'
export * from './plugin.js'
export { routeOf } from './routes.js'
