#!/bin/sh
# Entry point of the image of Containerfile.servers: postgresql, rabbitmq, or another command. Takes the variables that
# the official images of these servers take.
set -eu
case "$1" in
postgresql)
    data=/var/lib/postgresql/data/cluster
    if [ ! -s "$data/PG_VERSION" ]; then
        umask 077
        printf '%s\n' "$POSTGRES_PASSWORD" >/tmp/password
        /usr/local/postgresql/initdb -D "$data" -U "$POSTGRES_USER" --pwfile=/tmp/password -A scram-sha-256 -E UTF8 \
            --no-instructions
        rm /tmp/password
        echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
        echo "CREATE DATABASE \"$POSTGRES_DB\";" | /usr/local/postgresql/postgres --single -D "$data" postgres >/dev/null
    fi
    exec /usr/local/postgresql/postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp
    ;;
rabbitmq)
    umask 077
    # The user is made when the broker starts without any data.
    printf 'default_user = %s\ndefault_pass = %s\nlog.console = true\n' "$RABBITMQ_DEFAULT_USER" "$RABBITMQ_DEFAULT_PASS" \
        >/tmp/rabbitmq.conf
    export RABBITMQ_CONFIG_FILE=/tmp/rabbitmq.conf RABBITMQ_ENABLED_PLUGINS_FILE=/tmp/plugins RABBITMQ_LOG_BASE=/tmp
    echo '[].' >/tmp/plugins
    exec /usr/lib/rabbitmq/bin/rabbitmq-server
    ;;
*)
    exec "$@"
    ;;
esac
