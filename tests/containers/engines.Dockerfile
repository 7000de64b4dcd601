# Redis and OpenSearch as their published images are used by the composition: paths, users, environment.
ARG BASE

FROM ${BASE} AS redis
# The published image answers from other addresses without a password as well.
RUN install -d -o redis -g redis /data \
    && printf '#!/bin/sh\nexec /usr/bin/redis-server "$@" --protected-mode no\n' >/usr/local/bin/redis-server \
    && chmod 0755 /usr/local/bin/redis-server
WORKDIR /data
CMD ["redis-server"]

FROM ${BASE} AS opensearch
WORKDIR /usr/share/opensearch
RUN groupadd --gid 1000 opensearch \
    && useradd --uid 1000 --gid 1000 --no-create-home --home-dir /usr/share/opensearch opensearch \
    && install -d -o opensearch -g opensearch config data logs
COPY java /opt/java
COPY jars lib
COPY start_opensearch.py /usr/local/bin/
USER 1000:1000
EXPOSE 9200
ENTRYPOINT ["python3", "-I", "/usr/local/bin/start_opensearch.py"]
